// exp(x) for x <= 0, FP32, within 2 ulp over the whole range: exp(0) = 1, subnormal results are
// kept, exp(-inf) = 0, and NaN stays NaN. Softmax needs no other argument: a maximum has been
// subtracted.
//
// x = n ln 2 + r with n an integer and |r| <= ln(2) / 2 (1 + small): exp(x) = 2^n exp(r), and
// exp(r) = 1 + r + r^2 P(r). P was fitted by iteratively reweighted least squares so that the
// largest relative error is least (2^-28 with its coefficients rounded to FP32). ln 2 is split in
// two (Cody and Waite): n times the first part is exact.
//
// n comes from adding 1.5 * 2^23 + 152: the sum's low bits are then n + 152. Shifted into the
// exponent they are 2^(n + 25), which is normal for every n >= -151; exp(r) times it is exact, and
// the last multiplication by 2^-25 rounds a subnormal result once.
#pragma once

#include <cstdint>
#include <cstring>

namespace sgl_rvv {

struct ExpConstants {
  static constexpr float kLeast = -104.0F;  // below it the result rounds to 0
  static constexpr float kLog2E = 0x1.715476p+0F;
  static constexpr float kShift = 0x1.8p23F + 152.0F;
  static constexpr float kUnshift = 0x1p-25F;
  static constexpr float kLn2High = 0x1.63p-1F;
  static constexpr float kLn2Low = -0x1.bd0106p-13F;
  static constexpr float kP0 = 0x1.fffffcp-2F;
  static constexpr float kP1 = 0x1.555492p-3F;
  static constexpr float kP2 = 0x1.5558f2p-5F;
  static constexpr float kP3 = 0x1.123a20p-7F;
  static constexpr float kP4 = 0x1.6a23d0p-10F;
};

[[nodiscard]] inline float exp_nonpositive(float x) {
  using C = ExpConstants;
  if (x < C::kLeast) return 0.0F;
  const float shifted = x * C::kLog2E + C::kShift;
  const float n = shifted - C::kShift;
  const float r = (x - n * C::kLn2High) - n * C::kLn2Low;
  const float p = (((C::kP4 * r + C::kP3) * r + C::kP2) * r + C::kP1) * r + C::kP0;
  const float fraction = (p * r * r + r) + 1.0F;
  uint32_t exponent;
  std::memcpy(&exponent, &shifted, sizeof exponent);
  exponent <<= 23;
  float power;
  std::memcpy(&power, &exponent, sizeof power);
  return fraction * power * C::kUnshift;
}

}  // namespace sgl_rvv
