// out[M, N] = round_bf16(left[M, K] * weight[N, K]^T + bias[N]), weight packed (packed_layout.h),
// FP32 accumulation.
//
// The operands that a kernel sees are prepared once per call, outside the kernels:
//   left: FP32, in tiles of at most kTileRows rows. Tile t begins at t * kTileRows * K and holds
//   its
//         r = min(kTileRows, M - t * kTileRows) rows interleaved as [K][r], so that one k's r
//         values are adjacent.
//   bias: FP32 [ceil(N / 32)][2][16], even columns of a block before odd ones, zero padded; or
//   null.
//
// Every kernel adds the products of one output in the order of k, in one FP32 chain, then adds the
// bias and rounds once. A row's result therefore depends neither on M nor on VLEN.
#pragma once

#include <cstdint>

namespace sgl_rvv {

constexpr int64_t kTileRows = 6;

struct PackedLinear {
  int64_t m;
  int64_t n;
  int64_t k;
  const float* left;
  const uint16_t* weight;  // 4-byte aligned
  const float* bias;       // or null
  uint16_t* out;           // BF16 [m, n]; 2-byte alignment is enough
  int64_t out_stride;      // elements from one row of `out` to the next, >= n
};

// Computes all rows of the output columns of blocks [block_begin, block_end). Blocks are
// independent: call it in parallel over blocks. Writes nothing outside columns [32 * block_begin,
// min(n, 32 * block_end)).
using PackedLinearKernel = void(const PackedLinear& call, int64_t block_begin, int64_t block_end);

// FP32 elements that prepare_left_bf16 writes.
[[nodiscard]] constexpr int64_t left_elements(int64_t m, int64_t k) {
  return m * k;
}

// Elements that prepare_bias writes.
[[nodiscard]] constexpr int64_t bias_elements(int64_t n) {
  return (n + 31) / 32 * 32;
}

[[nodiscard]] constexpr int64_t left_tiles(int64_t m) {
  return (m + kTileRows - 1) / kTileRows;
}

// Converts and interleaves tiles [tile_begin, tile_end) of `left` (BF16 [m, k], row stride `ld` in
// elements).
void prepare_left_bf16(const uint16_t* left, int64_t ld, int64_t m, int64_t k, int64_t tile_begin,
                       int64_t tile_end, float* prepared);

// Splits an FP32 bias [n] into the even and odd columns of each block.
void prepare_bias(const float* bias, int64_t n, float* prepared);

}  // namespace sgl_rvv
