// exp, log, tanh, erf and rounding of eight float32 at once. Without torch.
//
// Coefficients are made by scripts/fit_elementary.py of the project. Errors, in units of the last
// place (ULP) of the correctly rounded result, are bounds that held for one in seven of all
// float32, spread evenly, against the double functions of libm
// (kernels/tests/rvv_inductor/exhaustive.cpp). The arithmetic is IEEE 754's everywhere, so they
// hold on every machine.
//
//   function     error       remarks
//   exp          1.02 ULP    results below 2^-126 keep their bits
//   exp_fast     2.27 ULP    results below 2^-126 become 0
//   log          0.87 ULP
//   tanh         2.62 ULP
//   erf          1.30 ULP
//
// NaN gives NaN, infinities what their limits are, log of less than 0 NaN. -0 keeps its sign in
// tanh and erf.
#pragma once

#include "lanes.h"

namespace rvv_inductor {

inline constexpr float kInfinity = __builtin_inff();
inline constexpr float kLog2E = 0x1.715476p+0f;
// ln 2 in two parts: the upper one has 15 bits, so that its products with exponents are exact.
inline constexpr float kLn2High = 0x1.62e4p-1f;
inline constexpr float kLn2Low = 0x1.7f7d1cp-20f;
// Added to a number below 2^22 it leaves that number's nearest integer in the lower bits of the
// sum.
inline constexpr float kRounder = 0x1.8p23f;
inline constexpr int32_t kRounderBits = 0x4b400000;
inline constexpr int32_t kMantissaBits = 23;
inline constexpr int32_t kOneBits = 0x3f800000;

// (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2; errors 2^-28 and 2^-23 relative to e^r.
inline constexpr float kExp[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.1239d6p-7f,
                                 0x1.6a2448p-10f};
inline constexpr float kExpFast[] = {0x1.fffdfcp-2f, 0x1.5557aep-3f, 0x1.5729f2p-5f,
                                     0x1.106282p-7f};
// (log(1 + f) - f + f^2 / 2) / f^3 from sqrt(1/2) to sqrt(2); error 2^-27.
inline constexpr float kLog[] = {0x1.555554p-2f, -0x1.000226p-2f, 0x1.99a008p-3f, -0x1.547244p-3f,
                                 0x1.22da1ep-3f, -0x1.0d8542p-3f, 0x1.055b68p-3f, -0x1.38b576p-4f};
// erf(x) / x - 1 as a polynomial in x^2, |x| <= 1; error 2^-27.
inline constexpr float kErf[] = {0x1.06eba8p-3f, -0x1.81273ep-2f,  0x1.ce2cf8p-4f, -0x1.b7f90cp-6f,
                                 0x1.5405b2p-8f, -0x1.a3f6fep-11f, 0x1.496a2ep-14f};
// -log(erfc(x)) for 1 <= x <= 4; error of erf 2^-26.
inline constexpr float kErfcLog[] = {-0x1.8b3f2p-13f,  0x1.212c2cp+0f,  0x1.4434fp-1f,
                                     0x1.bc18dp-4f,    -0x1.9d0bd6p-6f, 0x1.1398fap-8f,
                                     -0x1.ceeaecp-12f, 0x1.6c068ep-16f};

// The polynomial, lowest coefficient first, as one in x^2 whose coefficients are c + d x. So all
// are operands of instructions that take a scalar; by Horner's rule they are summands of fused
// ones, each in a vector register, which compilers hoist out of loops and then spill.
template <int N>
[[gnu::always_inline]] inline F32 polynomial(const float (&coefficients)[N], F32 x) {
  const F32 square = x * x;
  const auto pair = [&](int i) { return coefficients[i + 1] * x + coefficients[i]; };
  constexpr int kLast = N % 2 == 0 ? N - 2 : N - 3;
  F32 sum = pair(kLast);
  if constexpr (N % 2 == 1) sum = fma(coefficients[N - 1], square, sum);
#pragma GCC unroll 8
  for (int i = kLast - 2; i >= 0; i -= 2) sum = fma(sum, square, pair(i));
  return sum;
}

// At most `limit`; NaN stays.
[[gnu::always_inline]] inline F32 at_most(F32 x, float limit) {
  return x > limit ? splat(limit) : x;
}
[[gnu::always_inline]] inline F32 at_least(F32 x, float limit) {
  return x < limit ? splat(limit) : x;
}

// x = n ln 2 + r with |r| <= ln 2 / 2. `rounded` is n + kRounder.
struct Reduced {
  F32 rounded;
  F32 rest;
};

[[gnu::always_inline]] inline Reduced reduce(F32 x) {
  const F32 rounded = x * kLog2E + kRounder;
  const F32 n = rounded - kRounder;
  return {rounded, fma(-kLn2Low, n, fma(-kLn2High, n, x))};
}

// 2^n of -126 <= n <= 127, from n + kRounder.
[[gnu::always_inline]] inline F32 power_of_two(F32 rounded) {
  return bits_of<F32>((bits_of<I32>(rounded) << kMantissaBits) + kOneBits);
}

[[gnu::always_inline]] inline F32 exp(F32 x) {
  // Beyond these results are infinite and, rounded, 0.
  const Reduced x_ = reduce(at_least(at_most(x, 89.0f), -104.0f));
  const F32 mantissa = fma(x_.rest * x_.rest, polynomial(kExp, x_.rest), x_.rest) + 1.0f;
  // n is down to -150: two factors, of which only the second one rounds.
  const I32 n = bits_of<I32>(x_.rounded) - kRounderBits;
  const I32 first = n >> 1;
  const I32 second = n - first;
  const F32 halfway = mantissa * bits_of<F32>((first << kMantissaBits) + kOneBits);
  return halfway * bits_of<F32>((second << kMantissaBits) + kOneBits);
}

[[gnu::always_inline]] inline F32 exp_fast(F32 x) {
  const Reduced x_ = reduce(x);
  const F32 mantissa = fma(x_.rest * x_.rest, polynomial(kExpFast, x_.rest), x_.rest) + 1.0f;
  F32 result = bits_of<F32>(bits_of<I32>(mantissa) + (bits_of<I32>(x_.rounded) << kMantissaBits));
  result = x > 0x1.62e42ep+6f ? splat(kInfinity) : result;
  result = x < -0x1.5d589ep+6f ? F32{} : result;
  return x == x ? result : x;
}

// e^x of -87 <= x <= 0 or NaN.
[[gnu::always_inline]] inline F32 exp_of_negative(F32 x) {
  const Reduced x_ = reduce(x);
  const F32 mantissa = fma(x_.rest * x_.rest, polynomial(kExp, x_.rest), x_.rest) + 1.0f;
  return mantissa * power_of_two(x_.rounded);
}

[[gnu::always_inline]] inline F32 log(F32 x) {
  const auto small = x < 0x1p-126f;
  const I32 bits = bits_of<I32>(small ? x * 0x1p25f : x);
  // The exponent is counted from sqrt(1/2) on, so that the mantissa lies around 1.
  constexpr int32_t kRootHalf = 0x3f3504f3;
  const I32 shifted = bits - kRootHalf;
  const I32 exponent = (shifted >> kMantissaBits) - (small ? splat(25) : I32{});
  const F32 e = __builtin_convertvector(exponent, F32);
  const F32 f = bits_of<F32>((shifted & 0x007fffff) + kRootHalf) - 1.0f;
  const F32 square = f * f;
  F32 tail = square * f * polynomial(kLog, f);
  tail = fma(kLn2Low, e, tail);
  tail = fma(-0.5f, square, tail);
  F32 result = fma(kLn2High, e, f + tail);
  result = x < kInfinity ? result : x;
  result = x == 0.0f ? splat(-kInfinity) : result;
  return x < 0.0f ? splat(__builtin_nanf("")) : result;
}

// tanh(x) = m / (m + 2) with m = e^2x - 1, which loses nothing where x is small.
[[gnu::always_inline]] inline F32 tanh(F32 x) {
  const F32 magnitude = at_most(abs(x), 10.0f);
  const Reduced x_ = reduce(magnitude + magnitude);
  const F32 low = fma(x_.rest * x_.rest, polynomial(kExp, x_.rest), x_.rest);
  const F32 scale = power_of_two(x_.rounded);
  const F32 m = fma(scale, low, scale - 1.0f);
  return copysign(m / (m + 2.0f), x);
}

[[gnu::always_inline]] inline F32 erf(F32 x) {
  const F32 magnitude = at_most(abs(x), 4.0f);
  const F32 inner = fma(magnitude, polynomial(kErf, magnitude * magnitude), magnitude);
  const F32 outer = 1.0f - exp_of_negative(negate(polynomial(kErfcLog, magnitude)));
  return copysign(magnitude < 1.0f ? inner : outer, x);
}

[[gnu::always_inline]] inline F32 reciprocal_sqrt(F32 x) {
  return 1.0f / sqrt(x);
}

// To the nearest integer, of two the even one. The sign of 0 is kept here and in what follows.
[[gnu::always_inline]] inline F32 round_even(F32 x) {
  const F32 magnitude = abs(x);
  const F32 nearest = (magnitude + 0x1p23f) - 0x1p23f;
  return copysign(magnitude < 0x1p23f ? nearest : magnitude, x);
}

[[gnu::always_inline]] inline F32 floor(F32 x) {
  const F32 nearest = round_even(x);
  return copysign(nearest > x ? nearest - 1.0f : nearest, x);
}

[[gnu::always_inline]] inline F32 ceil(F32 x) {
  return negate(floor(negate(x)));
}

[[gnu::always_inline]] inline F32 trunc(F32 x) {
  return copysign(floor(abs(x)), x);
}

// As IEEE 754's maximum and minimum: NaN wins. Which of +0 and -0 comes out is not said.
template <typename L>
[[gnu::always_inline]] inline L maximum(L a, L b) {
  const L larger = a > b ? a : b;  // b where b is NaN
  return a == a ? larger : a;
}
template <typename L>
[[gnu::always_inline]] inline L minimum(L a, L b) {
  const L smaller = a < b ? a : b;
  return a == a ? smaller : a;
}

}  // namespace rvv_inductor
