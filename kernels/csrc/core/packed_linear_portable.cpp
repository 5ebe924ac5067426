// Packed linear in plain C++, any M: tiles of six rows by 32 columns whose accumulators the
// compiler may keep in vector registers. Requires nothing. Compiled with -ffp-contract=off, so that
// every architecture gives the same bits.

#include <algorithm>

#include "core/bf16.h"
#include "core/fp16.h"
#include "core/kernels_portable.h"
#include "core/packed_layout.h"

namespace sgl_rvv {
namespace {

using Widen = float(uint16_t);
using Round = uint16_t(float);

template <Widen widen, Round round>
void tile(const PackedLinear& call, int64_t block, int64_t first_row, int64_t rows) {
  float sums[kTileRows][kBlockColumns] = {};
  const float* left = static_cast<const float*>(call.left) + first_row * call.k;
  const uint16_t* packed = call.weight + packed_block_offset(block, call.k);
  for (int64_t k = 0; k < call.k; ++k, left += rows, packed += kBlockColumns) {
    float right[kBlockColumns];
    for (int64_t column = 0; column < kBlockColumns; ++column) {
      right[column] = widen(packed[column]);
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
      if (call.bias != nullptr) sum += call.bias[first + column];
      out[column] = round(sum);
    }
  }
}

template <Widen widen, Round round>
void linear(const PackedLinear& call, int64_t block_begin, int64_t block_end) {
  for (int64_t block = block_begin; block < block_end; ++block) {
    for (int64_t row = 0; row < call.m; row += kTileRows) {
      tile<widen, round>(call, block, row, std::min(kTileRows, call.m - row));
    }
  }
}

}  // namespace

void packed_linear_bf16_portable(const PackedLinear& call, int64_t block_begin, int64_t block_end) {
  linear<bf16_to_float, float_to_bf16>(call, block_begin, block_end);
}

void packed_linear_fp16_portable(const PackedLinear& call, int64_t block_begin, int64_t block_end) {
  linear<fp16_to_float, float_to_fp16>(call, block_begin, block_end);
}

}  // namespace sgl_rvv
