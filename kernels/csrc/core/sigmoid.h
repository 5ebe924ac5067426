// The sigmoid and what is made of it, on the lanes of lanes_rvv.h or lanes_portable.h. FP32.
//
// sigmoid(x) = 1 / (1 + exp(-x)), x held to [-87.25, 87.25]: below, it stays at exp(-87.25), about
// 2^-126, instead of going on to 0. NaN stays NaN where a product with x is taken.
//
// -x = n ln 2 + r with n an integer and |r| <= ln(2) / 2 (1 + small): exp(-x) = 2^n exp(r), where
// exp(r) = 1 + r + r^2 (1/2 + ...) and the polynomial in brackets was fitted so that the largest
// relative error of exp(r) is least (2^-23). n comes from adding 1.5 * 2^23 + 127, which leaves
// n + 127, the exponent of 2^n, in the low bits of the sum. Here everything is written in -r.
#pragma once

#include <cstddef>

namespace sgl_rvv {

struct SigmoidConstants {
  static constexpr float kMost = 87.25F;
  static constexpr float kMinusLog2E = -0x1.715476p+0F;
  static constexpr float kShift = 0x1.8p23F + 127.0F;
  static constexpr float kLn2 = 0x1.62e430p-1F;
  static constexpr float kP0 = 0x1.fffdf8p-2F;
  static constexpr float kP1 = -0x1.5557b6p-3F;
  static constexpr float kP2 = 0x1.572c64p-5F;
  static constexpr float kP3 = -0x1.106166p-7F;
};

// exp(-x), |x| <= kMost.
template <class Lanes>
inline __attribute__((always_inline)) typename Lanes::Float exp_minus(typename Lanes::Float x,
                                                                      size_t vl) {
  using C = SigmoidConstants;
  using Float = typename Lanes::Float;
  const Float shifted = Lanes::add(Lanes::multiply(x, C::kMinusLog2E, vl), C::kShift, vl);
  const Float n = Lanes::subtract(shifted, C::kShift, vl);
  const Float r = Lanes::multiply_add(x, C::kLn2, n, vl);  // -r
  const Float square = Lanes::multiply(r, r, vl);
  const Float high = Lanes::add(Lanes::multiply(r, C::kP3, vl), C::kP2, vl);
  const Float low = Lanes::add(Lanes::multiply(r, C::kP1, vl), C::kP0, vl);
  const Float fraction =
      Lanes::multiply_add(Lanes::add(Lanes::multiply(r, -1.0F, vl), 1.0F, vl),
                          Lanes::multiply_add(low, high, square, vl), square, vl);
  return Lanes::multiply(fraction, Lanes::power_of_two(shifted, vl), vl);
}

template <class Lanes>
inline __attribute__((always_inline)) typename Lanes::Float sigmoid(typename Lanes::Float x,
                                                                    size_t vl) {
  using C = SigmoidConstants;
  const typename Lanes::Float held = Lanes::held(x, C::kMost, vl);
  return Lanes::reciprocal(Lanes::add(exp_minus<Lanes>(held, vl), 1.0F, vl), vl);
}

// x * sigmoid(x).
template <class Lanes>
inline __attribute__((always_inline)) typename Lanes::Float silu(typename Lanes::Float x,
                                                                 size_t vl) {
  return Lanes::multiply(x, sigmoid<Lanes>(x, vl), vl);
}

}  // namespace sgl_rvv
