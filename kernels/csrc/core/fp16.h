// FP16 (IEEE binary16) as its 16-bit pattern, converted with integer and FP32 arithmetic only.
#pragma once

#include <cstdint>
#include <cstring>

namespace sgl_rvv {

// Exact. The exponent and fraction are put where FP32 has them, 112 too low in exponent; the
// product with 2^112 mends that, for subnormals too. Infinity and NaN keep their fraction.
[[nodiscard]] inline float fp16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16;
  uint32_t wide = static_cast<uint32_t>(bits & 0x7fffU) << 13;
  float value;
  if (wide >= 0x0f800000U) {
    wide |= 0x7f800000U;
  } else {
    std::memcpy(&value, &wide, sizeof value);
    value *= 0x1p112F;
    std::memcpy(&wide, &value, sizeof wide);
  }
  wide |= sign;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// Rounds to nearest, ties to even; a NaN stays a NaN (made quiet), what is too large becomes
// infinity.
[[nodiscard]] inline uint16_t float_to_fp16(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof wide);
  const uint16_t sign = static_cast<uint16_t>((wide >> 16) & 0x8000U);
  wide &= 0x7fffffffU;
  if (wide > 0x7f800000U) return sign | 0x7e00U;
  if (wide >= 0x47800000U) return sign | 0x7c00U;  // 2^16 and above; 65520 and above round up to it
  if (wide < 0x38800000U) {
    // Subnormal: adding 1/2 puts the last place of the sum at 2^-24, where FP16's is.
    float magnitude;
    std::memcpy(&magnitude, &wide, sizeof magnitude);
    magnitude += 0.5F;
    std::memcpy(&wide, &magnitude, sizeof wide);
    return sign | static_cast<uint16_t>(wide - 0x3f000000U);
  }
  wide += 0xfffU + ((wide >> 13) & 1U);
  return sign | static_cast<uint16_t>((wide - 0x38000000U) >> 13);
}

}  // namespace sgl_rvv
