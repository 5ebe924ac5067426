// BF16 packed linear in plain C++, any M: tiles of six rows by 32 columns whose accumulators the
// compiler may keep in vector registers. Requires nothing. Compiled with -ffp-contract=off, so that
// every architecture gives the same bits.

#include <algorithm>

#include "core/bf16.h"
#include "core/kernels_portable.h"
#include "core/packed_layout.h"

namespace sgl_rvv {
namespace {

constexpr int64_t kHalf = kBlockColumns / 2;

void tile(const PackedLinear& call, int64_t block, int64_t first_row, int64_t rows) {
  float sums[kTileRows][kBlockColumns] = {};
  const float* left = call.left + first_row * call.k;
  const uint16_t* packed = call.weight + packed_block_offset(block, call.k);
  for (int64_t k = 0; k < call.k; ++k, left += rows, packed += kBlockColumns) {
    float right[kBlockColumns];
    for (int64_t column = 0; column < kBlockColumns; ++column) {
      right[column] = bf16_to_float(packed[column]);
    }
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < kBlockColumns; ++column) {
        sums[row][column] += left[row] * right[column];
      }
    }
  }
  const int64_t first = block * kBlockColumns;
  const int64_t columns = std::min(kBlockColumns, call.n - first);
  for (int64_t row = 0; row < rows; ++row) {
    uint16_t* out = call.out + (first_row + row) * call.out_stride + first;
    for (int64_t column = 0; column < columns; ++column) {
      float sum = sums[row][column];
      if (call.bias != nullptr) sum += call.bias[first + (column % 2) * kHalf + column / 2];
      out[column] = float_to_bf16(sum);
    }
  }
}

}  // namespace

void packed_linear_bf16_portable(const PackedLinear& call, int64_t block_begin, int64_t block_end) {
  for (int64_t block = block_begin; block < block_end; ++block) {
    for (int64_t row = 0; row < call.m; row += kTileRows) {
      tile(call, block, row, std::min(kTileRows, call.m - row));
    }
  }
}

}  // namespace sgl_rvv
