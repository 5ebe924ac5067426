// exp.h for vectors of FP32. 13 floating-point and 6 integer instructions; the two units overlap.
// Only for files that are compiled with V.
#pragma once

#include <riscv_vector.h>

#include "core/exp.h"

namespace sgl_rvv {

inline __attribute__((always_inline)) vfloat32m4_t exp_nonpositive(vfloat32m4_t x, size_t vl) {
  using C = ExpConstants;
  // Not `x >= kLeast`: that is false for NaN, which has to pass. The integer instructions are
  // masked in any case, see all_lanes() in attention_tiles_rvv.h.
  const vbool8_t live = __riscv_vmnot_m_b8(__riscv_vmflt_vf_f32m4_b8(x, C::kLeast, vl), vl);
  const vfloat32m4_t shifted =
      __riscv_vfmadd_vf_f32m4(x, C::kLog2E, __riscv_vfmv_v_f_f32m4(C::kShift, vl), vl);
  const vfloat32m4_t n = __riscv_vfsub_vf_f32m4(shifted, C::kShift, vl);
  vfloat32m4_t r = __riscv_vfnmsac_vf_f32m4(x, C::kLn2High, n, vl);
  r = __riscv_vfnmsac_vf_f32m4(r, C::kLn2Low, n, vl);
  vfloat32m4_t p = __riscv_vfmul_vf_f32m4(r, C::kP4, vl);
  p = __riscv_vfadd_vf_f32m4(p, C::kP3, vl);
  p = __riscv_vfmul_vv_f32m4(p, r, vl);
  p = __riscv_vfadd_vf_f32m4(p, C::kP2, vl);
  p = __riscv_vfmul_vv_f32m4(p, r, vl);
  p = __riscv_vfadd_vf_f32m4(p, C::kP1, vl);
  p = __riscv_vfmul_vv_f32m4(p, r, vl);
  p = __riscv_vfadd_vf_f32m4(p, C::kP0, vl);
  const vfloat32m4_t square = __riscv_vfmul_vv_f32m4(r, r, vl);
  p = __riscv_vfmadd_vv_f32m4(p, square, r, vl);
  p = __riscv_vfadd_vf_f32m4(p, 1.0F, vl);
  const vuint32m4_t exponent =
      __riscv_vsll_vx_u32m4_m(live, __riscv_vreinterpret_v_f32m4_u32m4(shifted), 23, vl);
  const vuint32m4_t bits = __riscv_vadd_vv_u32m4_mu(
      live, __riscv_vmv_v_x_u32m4(0, vl), __riscv_vreinterpret_v_f32m4_u32m4(p), exponent, vl);
  return __riscv_vfmul_vf_f32m4(__riscv_vreinterpret_v_u32m4_f32m4(bits), C::kUnshift, vl);
}

}  // namespace sgl_rvv
