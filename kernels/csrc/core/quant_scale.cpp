#include "core/quant_scale.h"

namespace sgl_rvv {
namespace {

template <class Bits>
void fill(const Bits* row, int64_t k, Bits infinity, bool has_nan, int8_t* codes) {
  constexpr auto kMagnitude = static_cast<Bits>(static_cast<Bits>(-1) >> 1);
  for (int64_t i = 0; i < k; ++i) {
    const bool infinite = !has_nan && (row[i] & kMagnitude) == infinity;
    const bool negative = row[i] > kMagnitude;
    codes[i] = static_cast<int8_t>(infinite ? (negative ? -127 : 127) : 0);
  }
}

}  // namespace

void special_codes(const uint16_t* row, int64_t k, uint16_t infinity, bool has_nan, int8_t* codes) {
  fill(row, k, infinity, has_nan, codes);
}

void special_codes(const uint32_t* row, int64_t k, uint32_t infinity, bool has_nan, int8_t* codes) {
  fill(row, k, infinity, has_nan, codes);
}

}  // namespace sgl_rvv
