// A mask of ones, for the emulator's sake.
//
// Masks of ones cost nothing on hardware. For an unmasked integer instruction that fills its
// registers (vl = VLMAX) QEMU emits 256-bit AVX code and leaves the upper halves of the host's
// registers dirty, after which every SSE instruction of its floating-point helpers waits for them:
// the same kernel ran 10 to 15 times slower at VLEN 128 and 256 (QEMU 10.0 on an AMD EPYC host).
// Masked instructions go through helpers in C.
#pragma once

#include <riscv_vector.h>

#include <cstddef>

namespace sgl_rvv {

// Not known to the compiler to be ones, so that it keeps the masked form of the integer
// instructions. For 32-bit lanes: groups of two registers, and of four.
inline __attribute__((always_inline)) vbool16_t all_lanes(size_t vl) {
  vbool16_t all = __riscv_vmset_m_b16(vl);
  asm("" : "+vm"(all));
  return all;
}

inline __attribute__((always_inline)) vbool8_t all_lanes4(size_t vl) {
  vbool8_t all = __riscv_vmset_m_b8(vl);
  asm("" : "+vm"(all));
  return all;
}

}  // namespace sgl_rvv
