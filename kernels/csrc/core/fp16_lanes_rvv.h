// FP16 taken apart and put together by integer instructions, for RVV 1.0 without Zvfh.
//
// A half that is moved down by 3 bits from the top of its lane has its sign and its fraction where
// an FP32 has them, and an exponent that is 112 too small: multiplying by 2^112 mends that, for
// subnormals too. Infinities and NaNs, whose exponent is then not the highest, get it by an or.
#pragma once

#include <riscv_vector.h>

#include <cstddef>
#include <cstdint>

namespace sgl_rvv {

// The upper half of each lane.
inline __attribute__((always_inline)) vfloat32m2_t fp16_from_high_half(vuint32m2_t bits,
                                                                       vbool16_t all, size_t vl) {
  const vint32m2_t moved =
      __riscv_vsra_vx_i32m2_m(all, __riscv_vreinterpret_v_u32m2_i32m2(bits), 3, vl);
  const vuint32m2_t small =
      __riscv_vand_vx_u32m2_m(all, __riscv_vreinterpret_v_i32m2_u32m2(moved), 0x8fffe000U, vl);
  const vfloat32m2_t value =
      __riscv_vfmul_vf_f32m2(__riscv_vreinterpret_v_u32m2_f32m2(small), 0x1p112F, vl);
  // |value| >= 2^16: twice the bits, as the sign falls out, are those of 2^16 or more.
  const vuint32m2_t whole = __riscv_vreinterpret_v_f32m2_u32m2(value);
  const vuint32m2_t twice = __riscv_vadd_vv_u32m2_m(all, whole, whole, vl);
  const vbool16_t special = __riscv_vmsgtu_vx_u32m2_b16(twice, 2 * 0x47800000U - 1, vl);
  return __riscv_vreinterpret_v_u32m2_f32m2(
      __riscv_vor_vx_u32m2_mu(special, whole, whole, 0x7f800000U, vl));
}

// FP32 to FP16 in the low half of each lane (float_to_fp16 in fp16.h, all cases computed).
inline __attribute__((always_inline)) vuint32m2_t fp16_to_low_half(vfloat32m2_t value,
                                                                   vbool16_t all, size_t vl) {
  const vuint32m2_t bits = __riscv_vreinterpret_v_f32m2_u32m2(value);
  const vuint32m2_t magnitude = __riscv_vand_vx_u32m2_m(all, bits, 0x7fffffffU, vl);
  const vuint32m2_t last =
      __riscv_vand_vx_u32m2_m(all, __riscv_vsrl_vx_u32m2_m(all, magnitude, 13, vl), 1, vl);
  const vuint32m2_t increment = __riscv_vadd_vx_u32m2_m(all, last, 0xfffU - (112U << 23), vl);
  const vuint32m2_t normal =
      __riscv_vsrl_vx_u32m2_m(all, __riscv_vadd_vv_u32m2_m(all, magnitude, increment, vl), 13, vl);
  const vfloat32m2_t shifted =
      __riscv_vfadd_vf_f32m2(__riscv_vreinterpret_v_u32m2_f32m2(magnitude), 0.5F, vl);
  const vuint32m2_t places =
      __riscv_vsub_vx_u32m2_m(all, __riscv_vreinterpret_v_f32m2_u32m2(shifted), 0x3f000000U, vl);
  vuint32m2_t half = __riscv_vmerge_vvm_u32m2(
      normal, places, __riscv_vmsltu_vx_u32m2_b16(magnitude, 0x38800000U, vl), vl);
  half = __riscv_vmerge_vxm_u32m2(half, 0x7c00U,
                                  __riscv_vmsgtu_vx_u32m2_b16(magnitude, 0x477fefffU, vl), vl);
  half = __riscv_vmerge_vxm_u32m2(half, 0x7e00U,
                                  __riscv_vmsgtu_vx_u32m2_b16(magnitude, 0x7f800000U, vl), vl);
  const vuint32m2_t sign =
      __riscv_vand_vx_u32m2_m(all, __riscv_vsrl_vx_u32m2_m(all, bits, 16, vl), 0x8000U, vl);
  return __riscv_vor_vv_u32m2_m(all, half, sign, vl);
}

}  // namespace sgl_rvv
