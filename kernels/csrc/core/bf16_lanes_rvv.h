// Two BF16 in each 32-bit lane, as FP32: a BF16 is the high half of an FP32, so a shift left by 16
// gives the lower one, and a mask the upper one.
#pragma once

#include <riscv_vector.h>

#include <cstddef>

namespace sgl_rvv {

inline __attribute__((always_inline)) vfloat32m2_t bf16_from_low_half(vuint32m2_t bits,
                                                                      vbool16_t all, size_t vl) {
  return __riscv_vreinterpret_v_u32m2_f32m2(__riscv_vsll_vx_u32m2_m(all, bits, 16, vl));
}

inline __attribute__((always_inline)) vfloat32m2_t bf16_from_high_half(vuint32m2_t bits,
                                                                       vbool16_t all, size_t vl) {
  return __riscv_vreinterpret_v_u32m2_f32m2(__riscv_vand_vx_u32m2_m(all, bits, 0xffff0000U, vl));
}

}  // namespace sgl_rvv
