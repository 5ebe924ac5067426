// W8A8: out[M, N] = round(float(left[M, K] * weight[N, K]^T) * left_scale[M] * weight_scale[N] +
// bias[N]) with left and weight INT8, weight packed (packed_layout.h), sums in int32, exact.
//
// Exact for every input. A kernel adds the products of a group of k in 16 bits before it widens
// them. With A = the sum of |a_k| over the group, the group's sum lies within +-128 A, whatever the
// weights are:
//   4 k where A <= 255: |sum| <= 32640 fits;
//   2 k where A <= 255, which is always but for two codes of -128 (A = 256, sum up to 32768);
//   1 k: |sum| <= 16384 fits.
// So the activations alone decide how many k may share a 16-bit sum. prepare_int8_left() finds the
// largest group that all rows of a tile allow for each 4 k, and tells the kernels in runs. Codes of
// about normal distribution nearly always allow 4. An int32 holds the whole sum while K <= 131071
// (2^14 * 131071 < 2^31): kInt8LargestDepth.
//
// Then, in FP32 and in this order, each rounded to nearest even whatever the rounding mode in
// force: float(sum), times the row's scale, times the column's scale, plus the bias; at last the
// rounding to the output's type. All kernels give the same bits, at every M and VLEN and on every
// architecture (a NaN's payload aside).
#pragma once

#include <cstdint>

#include "core/packed_layout.h"
#include "core/types.h"

namespace sgl_rvv {

constexpr int64_t kInt8LargestDepth = 131071;
constexpr int64_t kInt8LargestTile = 6;   // up to so many rows the weight is read once
constexpr int64_t kInt8ManyRowsTile = 4;  // rows of a tile where there are more
constexpr int64_t kInt8PanelDepth = 256;  // k in one panel: 8 KiB of packed weight
constexpr int64_t kQuad = 4;              // k that a run counts by
constexpr int64_t kPanelQuads = kInt8PanelDepth / kQuad;
constexpr int64_t kInt8CodesRead = 16;  // bytes after the codes that kernels may read, and not use

// `quads` times 4 k, one after the other, in which `group` k (4, 2 or 1) may share a 16-bit sum.
struct Int8Run {
  uint8_t quads;
  uint8_t group;
};

struct Int8Linear {
  int64_t m;
  int64_t n;
  int64_t k;  // 1 to kInt8LargestDepth
  // Prepared by prepare_int8_left(): tile t of int8_tile_rows(m) rows (the last may have fewer, r)
  // begins at t * int8_tile_rows(m) * P * 256, with P = int8_panels(k), as [P][r][256].
  const int8_t* codes;
  // [tiles][P][64]: the runs of a tile's panel, which cover its whole quads in order.
  const Int8Run* runs;
  const float* left_scales;    // [m]
  const int8_t* weight;        // packed
  const float* weight_scales;  // [n]
  const float* bias;           // [n], or null
  void* out;                   // [m, n] of out_type, aligned to its elements
  Type out_type;               // kBf16, kFp16 or kFp32
  int64_t out_stride;          // elements from one row of `out` to the next, >= n
};

// Computes all rows of the output columns of blocks [block_begin, block_end). Blocks are
// independent: call it in parallel over blocks. Writes nothing outside columns [32 * block_begin,
// min(n, 32 * block_end)).
using Int8LinearKernel = void(const Int8Linear& call, int64_t block_begin, int64_t block_end);

[[nodiscard]] constexpr int64_t int8_tile_rows(int64_t m) {
  return m <= kInt8LargestTile ? m : kInt8ManyRowsTile;
}

[[nodiscard]] constexpr int64_t int8_tiles(int64_t m) {
  return m == 0 ? 0 : (m + int8_tile_rows(m) - 1) / int8_tile_rows(m);
}

[[nodiscard]] constexpr int64_t int8_panels(int64_t k) {
  return (k + kInt8PanelDepth - 1) / kInt8PanelDepth;
}

// Bytes of Int8Linear::codes, and elements of Int8Linear::runs.
[[nodiscard]] constexpr int64_t int8_codes(int64_t m, int64_t k) {
  return m * int8_panels(k) * kInt8PanelDepth + kInt8CodesRead;
}

[[nodiscard]] constexpr int64_t int8_runs(int64_t m, int64_t k) {
  return int8_tiles(m) * int8_panels(k) * kPanelQuads;
}

// Prepares tile `tile` of `left`, of which `rows` ([r, k], row stride `ld` in elements) are the
// tile's rows. `codes` and `runs` are those of the whole call.
void prepare_int8_left(const int8_t* rows, int64_t ld, int64_t m, int64_t k, int64_t tile,
                       int8_t* codes, Int8Run* runs);

}  // namespace sgl_rvv
