// Norms over rows of BF16, FP16 or FP32: out[r] = norm(x[r]), FP32 between input and output.
//
//   RMS    out = x * rsqrt(mean(x^2) + eps) * scale     scale: 1, weight, 1 + weight, or
//                                                       weight * silu(gate)
//   Layer  out = (x - mean(x)) * rsqrt(mean((x - mean(x))^2) + eps) * weight + bias
//
// With a residual, x is input + residual in FP32; the residual becomes that sum, rounded, and the
// norm is taken of the sum as it was before rounding.
//
// The order of additions is the same in all kernels of a type. Column c of a block is added to sum
// c % 32 of its block, in the order of c, by fused multiply-adds; then two sums each are added to
// each other (2 i and 2 i + 1 of BF16, i and i + 16 of the others), which leaves kNormSums; then
// the sums of all blocks, in the order of blocks; and at last halves of the sums (0 to kNormSums /
// 2 first). A row of fewer than kNormSharedColumns columns is one block. So a result depends
// neither on VLEN nor on the kernel nor on the number of threads, but where silu() is in it. The
// variance of Layer comes from the deviations, in a second pass.
//
// Rounded once, to nearest even. A BF16 zero is +0, and what is below 2^-110 before it is
// multiplied by the weight loses places (it is computed 2^16 times smaller, see lanes_rvv.h).
#pragma once

#include <cstdint>

#include "core/types.h"

namespace sgl_rvv {

constexpr int64_t kNormSums = 16;
constexpr int64_t kNormSharedColumns = 4096;
constexpr int64_t kNormBlock = 512;

enum class NormKind { kRms, kRmsWeight, kRmsOnePlusWeight, kRmsGated, kLayer };

// Rows of one type, whose elements are adjacent; strides in elements.
struct Norm {
  NormKind kind;
  int64_t columns;
  const void* input;
  int64_t input_stride;
  void* residual;  // null: none. Written.
  int64_t residual_stride;
  const void* gate;  // kRmsGated
  int64_t gate_stride;
  const void* weight;  // [columns]; not kRms
  const void* bias;    // [columns] or null; kLayer
  void* out;           // may be the input where there is a residual
  int64_t out_stride;
  float eps;
};

// kRows: whole rows. The others, in this order, are one row shared out by blocks: each must be done
// for all blocks before the next begins.
enum class NormStage {
  kRows,
  kSums,
  kDeviations,  // kLayer only
  kFinish
};

// Computes rows [begin, end), or, where `stage` is not kRows, blocks [begin, end) of row 0.
// `scratch`: norm_scratch_floats(call.columns) floats, one for each thread in kRows, else one for
// the row.
using NormKernel = void(const Norm& call, NormStage stage, int64_t begin, int64_t end,
                        float* scratch);

[[nodiscard]] constexpr int64_t norm_blocks(int64_t columns) {
  return columns < kNormSharedColumns ? 1 : (columns + kNormBlock - 1) / kNormBlock;
}

// Two sets of sums for each block, and the row in FP32, with room for a whole last step.
[[nodiscard]] constexpr int64_t norm_scratch_floats(int64_t columns) {
  return norm_blocks(columns) * 2 * kNormSums + (columns + 31) / 32 * 32;
}

}  // namespace sgl_rvv
