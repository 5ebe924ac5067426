// GELU on the lanes of lanes_rvv.h or lanes_portable.h. FP32.
//
// x * Phi(x) = max(x, 0) - |x| H(|x|) with H(a) = erfc(a / sqrt(2)) / 2, which loses nothing on
// either side. H(a) = exp(-a^2 / 2) Q(t), t = 1 / (1 + 0.3 a), where Q is a polynomial that was
// fitted so that the largest relative error is least (2^-23 for a <= 13; a is held to that). The
// form is that of Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
#pragma once

#include "core/sigmoid.h"

namespace sgl_rvv {

struct GeluConstants {
  static constexpr float kMost = 13.0F;
  static constexpr float kT = 0.3F;
  static constexpr float kQ[] = {0x1.e9fa16p-4F,  0x1.eefbb6p-4F, 0x1.96ed16p-4F,  0x1.0b17aap-3F,
                                 -0x1.d44fcep-5F, 0x1.ae5258p-3F, -0x1.466806p-3F, 0x1.288206p-5F};
  static constexpr float kTwiceRoot = 0x1.988454p+0F;       // 2 sqrt(2 / pi)
  static constexpr float kTwiceRootCubic = 0x1.2444f2p-4F;  // times 0.044715
};

template <class Lanes>
inline __attribute__((always_inline)) typename Lanes::Float gelu(typename Lanes::Float x,
                                                                 size_t vl) {
  using C = GeluConstants;
  using Float = typename Lanes::Float;
  const Float held = Lanes::held(x, C::kMost, vl);
  const Float positive = Lanes::positive(x, vl);
  // max(x, 0) - min(x, 0), of what is held.
  const Float size = Lanes::magnitude(held, vl);
  const Float t = Lanes::reciprocal(Lanes::add(Lanes::multiply(size, C::kT, vl), 1.0F, vl), vl);
  Float q = Lanes::splat(C::kQ[7], vl);
  for (int i = 6; i >= 0; --i) q = Lanes::add(Lanes::multiply(q, t, vl), C::kQ[i], vl);
  const Float half_square = Lanes::multiply(Lanes::multiply(size, size, vl), 0.5F, vl);
  const Float h = Lanes::multiply(Lanes::multiply(q, t, vl), exp_minus<Lanes>(half_square, vl), vl);
  return Lanes::multiply_add(positive, Lanes::multiply(size, -1.0F, vl), h, vl);
}

template <class Lanes>
inline __attribute__((always_inline)) typename Lanes::Float gelu_tanh(typename Lanes::Float x,
                                                                      size_t vl) {
  using C = GeluConstants;
  using Float = typename Lanes::Float;
  const Float square = Lanes::multiply(x, x, vl);
  const Float slope =
      Lanes::add(Lanes::multiply(square, C::kTwiceRootCubic, vl), C::kTwiceRoot, vl);
  return Lanes::multiply(x, sigmoid<Lanes>(Lanes::multiply(x, slope, vl), vl), vl);
}

}  // namespace sgl_rvv
