// BF16 as its 16-bit pattern: the high half of an FP32.
#pragma once

#include <cstdint>
#include <cstring>

namespace sgl_rvv {

[[nodiscard]] inline float bf16_to_float(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// Rounds to nearest, ties to even. A NaN stays a NaN (made quiet): adding the rounding increment to
// its payload could otherwise carry it into infinity.
[[nodiscard]] inline uint16_t float_to_bf16(float value) {
  uint32_t wide;
  std::memcpy(&wide, &value, sizeof wide);
  if ((wide & 0x7fffffffU) > 0x7f800000U) return static_cast<uint16_t>((wide >> 16) | 0x0040U);
  return static_cast<uint16_t>((wide + 0x7fffU + ((wide >> 16) & 1U)) >> 16);
}

}  // namespace sgl_rvv
