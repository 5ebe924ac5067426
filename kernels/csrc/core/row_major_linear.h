// out[M, N] = round(left[M, K] * weight[N, K]^T + bias[N]), the weight as it is, FP32 accumulation.
// Left, weight and output are all BF16 or all FP16.
//
// Vectors lie along K. A group is 32 k; it is added to partial sums, and the sums of an output are
// added up once, at its end, as a tree (halves first):
//   BF16: 16 sums; sum i adds the products of k = 32 g + 2 i, then of 32 g + 2 i + 1, g = 0, 1, ...
//   FP16: 32 sums; sum i adds the products of k = 32 g + i.
// Then the bias is added and the result rounded, once. Products are exact in FP32, so a result
// depends neither on M nor on VLEN nor on the kernel.
//
// The left operand is prepared once per call, outside the kernels: rows of
// row_major_depth(K) elements, zero after K: FP16 as it is where the kernel multiplies FP16
// (Kernel::prepared_left), else FP32, each group's 16 even k before its 16 odd ones.
#pragma once

#include <cstdint>

#include "core/types.h"

namespace sgl_rvv {

constexpr int64_t kGroupDepth = 32;

struct RowMajorLinear {
  int64_t m;
  int64_t n;
  int64_t k;
  const void* left;  // 4-byte aligned, [m, row_major_depth(k)]
  const uint16_t* weight;
  int64_t weight_stride;  // elements from one row of `weight` to the next
  const float* bias;      // [n], or null
  uint16_t* out;          // [m, n]
  int64_t out_stride;     // elements from one row of `out` to the next, >= n
};

// Computes all rows of the output columns [column_begin, column_end); columns are independent: call
// it in parallel over columns. Reads and writes nothing of other columns, nor after K.
using RowMajorLinearKernel = void(const RowMajorLinear& call, int64_t column_begin,
                                  int64_t column_end);

[[nodiscard]] constexpr int64_t row_major_depth(int64_t k) {
  return (k + kGroupDepth - 1) / kGroupDepth * kGroupDepth;
}

// Prepares rows [row_begin, row_end) of `left` ([m, k] of BF16 or FP16, as `type` says, row stride
// `ld` in elements) into `result`, [m, row_major_depth(k)] of `prepared`: FP32, or `type` itself.
void prepare_row_major_left(Type type, Type prepared, const uint16_t* left, int64_t ld, int64_t k,
                            int64_t row_begin, int64_t row_end, void* result);

}  // namespace sgl_rvv
