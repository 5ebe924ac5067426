#include "core/packed_linear.h"

#include <algorithm>

#include "core/bf16.h"
#include "core/fp16.h"
#include "core/types.h"

namespace sgl_rvv {
namespace {

template <class Element, class Convert>
void interleave(const uint16_t* left, int64_t ld, int64_t m, int64_t k, int64_t tile_begin,
                int64_t tile_end, Element* prepared, Convert convert) {
  for (int64_t tile = tile_begin; tile < tile_end; ++tile) {
    const int64_t first = tile * kTileRows;
    const int64_t rows = std::min(kTileRows, m - first);
    Element* target = prepared + first * k;
    for (int64_t row = 0; row < rows; ++row) {
      const uint16_t* source = left + (first + row) * ld;
      for (int64_t i = 0; i < k; ++i) target[i * rows + row] = convert(source[i]);
    }
  }
}

}  // namespace

void prepare_left(Type type, Type prepared, const uint16_t* left, int64_t ld, int64_t m, int64_t k,
                  int64_t tile_begin, int64_t tile_end, void* result) {
  if (prepared != Type::kFp32) {
    interleave(left, ld, m, k, tile_begin, tile_end, static_cast<uint16_t*>(result),
               [](uint16_t bits) { return bits; });
  } else if (type == Type::kBf16) {
    interleave(left, ld, m, k, tile_begin, tile_end, static_cast<float*>(result), bf16_to_float);
  } else {
    interleave(left, ld, m, k, tile_begin, tile_end, static_cast<float*>(result), fp16_to_float);
  }
}

void prepare_bias(const float* bias, int64_t n, float* prepared) {
  std::copy(bias, bias + n, prepared);
  std::fill(prepared + n, prepared + bias_elements(n), 0.0F);
}

}  // namespace sgl_rvv
