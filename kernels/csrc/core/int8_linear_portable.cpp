// W8A8 linear in plain C++, any M: sums of 32 columns in int32. Requires nothing. Compiled with
// -ffp-contract=off, so that every architecture gives the same bits.

#include <algorithm>

#include "core/bf16.h"
#include "core/fp16.h"
#include "core/kernels_portable.h"
#include "core/nearest_rounding.h"
#include "core/packed_layout.h"

namespace sgl_rvv {
namespace {

void store(void* out, Type type, int64_t place, float value) {
  switch (type) {
    case Type::kBf16:
      static_cast<uint16_t*>(out)[place] = float_to_bf16(value);
      return;
    case Type::kFp16:
      static_cast<uint16_t*>(out)[place] = float_to_fp16(value);
      return;
    default:
      static_cast<float*>(out)[place] = value;
  }
}

// Row `row` of tile rows `count`, whose panels begin at `codes`.
void add_row(const int8_t* codes, int64_t row, int64_t count, const int8_t* packed, int64_t k,
             int32_t* sums) {
  for (int64_t begin = 0; begin < k; begin += kInt8PanelDepth) {
    const int8_t* left = codes + begin * count + row * kInt8PanelDepth;
    const int64_t depth = std::min(kInt8PanelDepth, k - begin);
    for (int64_t i = 0; i < depth; ++i, packed += kBlockColumns) {
      for (int64_t column = 0; column < kBlockColumns; ++column) {
        sums[column] += left[i] * packed[column];
      }
    }
  }
}

void linear(const Int8Linear& call, int64_t block) {
  const int64_t first = block * kBlockColumns;
  const int64_t columns = std::min(kBlockColumns, call.n - first);
  const int8_t* packed = call.weight + packed_block_offset(block, call.k);
  const int64_t tile_rows = int8_tile_rows(call.m);
  for (int64_t row = 0; row < call.m; ++row) {
    const int64_t top = row / tile_rows * tile_rows;
    const int64_t count = std::min(tile_rows, call.m - top);
    int32_t sums[kBlockColumns] = {};
    add_row(call.codes + top * int8_panels(call.k) * kInt8PanelDepth, row - top, count, packed,
            call.k, sums);
    for (int64_t column = 0; column < columns; ++column) {
      float value = static_cast<float>(sums[column]) * call.left_scales[row];
      value *= call.weight_scales[first + column];
      if (call.bias != nullptr) value += call.bias[first + column];
      store(call.out, call.out_type, row * call.out_stride + first + column, value);
    }
  }
}

}  // namespace

void int8_linear_portable(const Int8Linear& call, int64_t block_begin, int64_t block_end) {
  const NearestRounding nearest;
  for (int64_t block = block_begin; block < block_end; ++block) linear(call, block);
}

}  // namespace sgl_rvv
