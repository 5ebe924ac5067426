// out[M, N] = round(left[M, K] * weight[N, K]^T + bias[N]), weight packed (packed_layout.h), FP32
// accumulation. Left, weight and output are all BF16 or all FP16.
//
// The operands that a kernel sees are prepared once per call, outside the kernels:
//   left: in tiles of at most kTileRows rows. Tile t begins at t * kTileRows * K and holds its
//         r = min(kTileRows, M - t * kTileRows) rows interleaved as [K][r], so that one k's r
//         values are adjacent. FP32, or as they were where the kernel multiplies those
//         (Kernel::prepared_left).
//   bias: FP32 [32 * ceil(N / 32)], zero padded; or null.
//
// Every kernel adds the products of one output in the order of k, in one FP32 chain, then adds the
// bias and rounds once. Products of two BF16 or two FP16 are exact in FP32. A row's result
// therefore depends neither on M nor on VLEN nor on the kernel.
#pragma once

#include <cstdint>

#include "core/packed_layout.h"

namespace sgl_rvv {

enum class Type;

constexpr int64_t kTileRows = 6;

struct PackedLinear {
  int64_t m;
  int64_t n;
  int64_t k;
  const void* left;
  const uint16_t* weight;  // 4-byte aligned
  const float* bias;       // or null
  uint16_t* out;           // [m, n]; 2-byte alignment is enough
  int64_t out_stride;      // elements from one row of `out` to the next, >= n
};

// Computes all rows of the output columns of blocks [block_begin, block_end). Blocks are
// independent: call it in parallel over blocks. Writes nothing outside columns [32 * block_begin,
// min(n, 32 * block_end)).
using PackedLinearKernel = void(const PackedLinear& call, int64_t block_begin, int64_t block_end);

// Elements that prepare_left writes.
[[nodiscard]] constexpr int64_t left_elements(int64_t m, int64_t k) {
  return m * k;
}

// Elements that prepare_bias writes.
[[nodiscard]] constexpr int64_t bias_elements(int64_t n) {
  return packed_blocks(n) * kBlockColumns;
}

[[nodiscard]] constexpr int64_t left_tiles(int64_t m) {
  return (m + kTileRows - 1) / kTileRows;
}

// Interleaves tiles [tile_begin, tile_end) of `left` ([m, k] of BF16 or FP16, as `type` says, row
// stride `ld` in elements) into `result`, as elements of `prepared`: FP32 (4 bytes), or `type`
// itself (2 bytes).
void prepare_left(Type type, Type prepared, const uint16_t* left, int64_t ld, int64_t m, int64_t k,
                  int64_t tile_begin, int64_t tile_end, void* result);

// Pads an FP32 bias [n] to whole blocks.
void prepare_bias(const float* bias, int64_t n, float* prepared);

}  // namespace sgl_rvv
