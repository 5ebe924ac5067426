#include "core/packed_linear.h"

#include <algorithm>

#include "core/bf16.h"
#include "core/packed_layout.h"

namespace sgl_rvv {

void prepare_left_bf16(const uint16_t* left, int64_t ld, int64_t m, int64_t k, int64_t tile_begin,
                       int64_t tile_end, float* prepared) {
  for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
    const int64_t first = tile * kTileRows;
    const int64_t rows = std::min(kTileRows, m - first);
    float* target = prepared + first * k;
    for (int64_t row = 0; row < rows; ++row) {
      const uint16_t* source = left + (first + row) * ld;
      for (int64_t i = 0; i < k; ++i) target[i * rows + row] = bf16_to_float(source[i]);
    }
  }
}

void prepare_bias(const float* bias, int64_t n, float* prepared) {
  constexpr int64_t kHalf = kBlockColumns / 2;
  for (int64_t column = 0; column < packed_blocks(n) * kBlockColumns; ++column) {
    const int64_t block = column / kBlockColumns;
    const int64_t within = column % kBlockColumns;
    const int64_t place = block * kBlockColumns + (within % 2) * kHalf + within / 2;
    prepared[place] = column < n ? bias[column] : 0.0F;
  }
}

}  // namespace sgl_rvv
