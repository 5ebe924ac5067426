#include "core/cpu.h"

#if defined(__riscv)
#include <asm/hwprobe.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sgl_rvv {
namespace {

#if defined(__riscv)

bool has_vector() {
  riscv_hwprobe pair{};
  pair.key = RISCV_HWPROBE_KEY_IMA_EXT_0;
  if (syscall(__NR_riscv_hwprobe, &pair, 1, 0, nullptr, 0) == 0 && pair.key >= 0) {
    return (pair.value & RISCV_HWPROBE_IMA_V) != 0;
  }
  // Kernels before 6.4 have no hwprobe; the letter in the auxiliary vector says the same.
  return (getauxval(AT_HWCAP) & (1UL << ('V' - 'A'))) != 0;
}

int64_t vector_bits() {
  int64_t bytes = 0;
  // This file is compiled without V, so that it runs anywhere; only this instruction needs it.
  asm volatile(".option push\n.option arch, +v\ncsrr %0, vlenb\n.option pop" : "=r"(bytes));
  return 8 * bytes;
}

CpuFeatures detect() {
  const bool rvv = has_vector();
  return {rvv, rvv ? vector_bits() : 0};
}

#else

CpuFeatures detect() {
  return {false, 0};
}

#endif

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

}  // namespace sgl_rvv
