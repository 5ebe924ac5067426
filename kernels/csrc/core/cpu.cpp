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

// Numbers of the kernel's ABI that older headers lack.
constexpr uint64_t kProbeZfh = 1ULL << 27;
constexpr uint64_t kProbeZvfh = 1ULL << 30;
constexpr uint64_t kProbeZvfbfwma = 1ULL << 54;

Extensions probe() {
  riscv_hwprobe pair{};
  pair.key = RISCV_HWPROBE_KEY_IMA_EXT_0;
  if (syscall(__NR_riscv_hwprobe, &pair, 1, 0, nullptr, 0) == 0 && pair.key >= 0) {
    if ((pair.value & RISCV_HWPROBE_IMA_V) == 0) return kNone;
    Extensions found = kV;
    if ((pair.value & kProbeZfh) != 0) found |= kZfh;
    if ((pair.value & kProbeZvfh) != 0) found |= kZvfh;
    if ((pair.value & kProbeZvfbfwma) != 0) found |= kZvfbfwma;
    return found;
  }
  // Kernels before 6.4 have no hwprobe; the letter in the auxiliary vector says whether there is V,
  // and nothing says whether there is more.
  return (getauxval(AT_HWCAP) & (1UL << ('V' - 'A'))) != 0 ? kV : kNone;
}

int64_t vector_bits() {
  int64_t bytes = 0;
  // This file is compiled without V, so that it runs anywhere; only this instruction needs it.
  asm volatile(".option push\n.option arch, +v\ncsrr %0, vlenb\n.option pop" : "=r"(bytes));
  return 8 * bytes;
}

CpuFeatures detect() {
  const Extensions found = probe();
  return {found, found == kNone ? 0 : vector_bits()};
}

#else

CpuFeatures detect() {
  return {kNone, 0};
}

#endif

CpuFeatures& features() {
  static CpuFeatures found = detect();
  return found;
}

}  // namespace

const CpuFeatures& cpu_features() {
  return features();
}

void assume_extensions(Extensions more) {
  features().extensions |= more;
}

const char* name_of_extensions(Extensions extensions) {
  switch (extensions) {
    case kNone:
      return "none";
    case kRvv:
      return "rvv";
    case kRvvZvfh:
      return "rvv+zvfh";
    case kRvvZvfbfwma:
      return "rvv+zvfbfwma";
    default:
      return "other";
  }
}

}  // namespace sgl_rvv
