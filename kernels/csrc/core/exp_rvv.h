// exp.h for vectors of FP32. Only for files that are compiled with V.
#pragma once

#include <riscv_vector.h>

#include "core/all_lanes_rvv.h"
#include "core/exp.h"

namespace sgl_rvv {

// exp(r); n + 152 is left in the low bits of `shifted`. kLeast <= x <= 0.
inline __attribute__((always_inline)) vfloat32m4_t exp_fraction(vfloat32m4_t x,
                                                                vfloat32m4_t& shifted, size_t vl) {
  using C = ExpConstants;
  shifted = __riscv_vfadd_vf_f32m4(__riscv_vfmul_vf_f32m4(x, C::kLog2E, vl), C::kShift, vl);
  const vfloat32m4_t n = __riscv_vfsub_vf_f32m4(shifted, C::kShift, vl);
  vfloat32m4_t r = __riscv_vfnmsac_vf_f32m4(x, C::kLn2High, n, vl);
  r = __riscv_vfnmsac_vf_f32m4(r, C::kLn2Low, n, vl);
  // Estrin's order: (P4 r^2 + (P3 r + P2)) r^2 + (P1 r + P0), short chains instead of a long one.
  const vfloat32m4_t square = __riscv_vfmul_vv_f32m4(r, r, vl);
  vfloat32m4_t high = __riscv_vfadd_vf_f32m4(__riscv_vfmul_vf_f32m4(r, C::kP3, vl), C::kP2, vl);
  vfloat32m4_t low = __riscv_vfadd_vf_f32m4(__riscv_vfmul_vf_f32m4(r, C::kP1, vl), C::kP0, vl);
  high = __riscv_vfmacc_vf_f32m4(high, C::kP4, square, vl);
  low = __riscv_vfmacc_vv_f32m4(low, high, square, vl);
  return __riscv_vfmacc_vv_f32m4(__riscv_vfadd_vf_f32m4(r, 1.0F, vl), low, square, vl);
}

inline __attribute__((always_inline)) vfloat32m4_t exp_nonpositive(vfloat32m4_t x, size_t vl) {
  using C = ExpConstants;
  // Not `x >= kLeast`: that is false for NaN, which has to pass.
  const vbool8_t live = __riscv_vmnot_m_b8(__riscv_vmflt_vf_f32m4_b8(x, C::kLeast, vl), vl);
  vfloat32m4_t shifted;
  const vfloat32m4_t fraction = exp_fraction(x, shifted, vl);
  const vuint32m4_t power =
      __riscv_vsll_vx_u32m4_m(live, __riscv_vreinterpret_v_f32m4_u32m4(shifted), 23, vl);
  const vfloat32m4_t scaled =
      __riscv_vfmul_vv_f32m4_mu(live, __riscv_vfmv_v_f_f32m4(0.0F, vl), fraction,
                                __riscv_vreinterpret_v_u32m4_f32m4(power), vl);
  return __riscv_vfmul_vf_f32m4(scaled, C::kUnshift, vl);
}

// The same where no x is NaN: a maximum does what the mask does above, in a third of the time. (The
// maximum of NaN and a number is the number.) The mask of ones is for emulation, see
// all_lanes_rvv.h.
inline __attribute__((always_inline)) vfloat32m4_t exp_nonpositive_number(vfloat32m4_t x,
                                                                          size_t vl) {
  using C = ExpConstants;
  const vbool8_t all = all_lanes4(vl);
  vfloat32m4_t shifted;
  const vfloat32m4_t fraction = exp_fraction(__riscv_vfmax_vf_f32m4(x, C::kLeast, vl), shifted, vl);
  const vuint32m4_t power =
      __riscv_vsll_vx_u32m4_m(all, __riscv_vreinterpret_v_f32m4_u32m4(shifted), 23, vl);
  const vfloat32m4_t scaled =
      __riscv_vfmul_vv_f32m4(fraction, __riscv_vreinterpret_v_u32m4_f32m4(power), vl);
  return __riscv_vfmul_vf_f32m4(scaled, C::kUnshift, vl);
}

}  // namespace sgl_rvv
