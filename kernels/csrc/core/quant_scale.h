// What a row's largest magnitude makes of the row (token_quant.h), in every kernel alike.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/token_quant.h"

namespace sgl_rvv {

struct QuantScale {
  float scale;
  float factor;  // what numbers are multiplied with; 0 where the row has an infinity or a NaN
};

// `largest` is the row's largest |x|: a number, infinity where there is one, NaN where there is
// one. The rounding mode must be to nearest.
[[nodiscard]] inline __attribute__((always_inline)) QuantScale quant_scale(float largest) {
  uint32_t bits;
  std::memcpy(&bits, &largest, sizeof bits);
  if (bits >= 0x7f800000U) {
    if (bits > 0x7f800000U) bits = 0x7fc00000U;
    std::memcpy(&largest, &bits, sizeof largest);
    return {largest, 0.0F};
  }
  if (largest < kLeastMagnitude) largest = kLeastMagnitude;
  return {largest / 127.0F, 127.0F / largest};
}

// The codes of a row [k] that has an infinity, or a NaN (`has_nan`), from the patterns of its
// numbers and that of infinity. Not inlined: compiled once, for any machine.
void special_codes(const uint16_t* row, int64_t k, uint16_t infinity, bool has_nan, int8_t* codes);
void special_codes(const uint32_t* row, int64_t k, uint32_t infinity, bool has_nan, int8_t* codes);

}  // namespace sgl_rvv
