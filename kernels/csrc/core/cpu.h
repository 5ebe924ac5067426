// What this machine's vector unit is, asked of the kernel at run time: one binary serves every
// machine.
#pragma once

#include <cstdint>

namespace sgl_rvv {

// Instruction-set extensions that some kernel needs, as a set.
using Extensions = uint32_t;

constexpr Extensions kNone = 0;
constexpr Extensions kV = 1U << 0;         // RVV 1.0
constexpr Extensions kZfh = 1U << 1;       // scalar FP16
constexpr Extensions kZvfh = 1U << 2;      // FP16 vectors
constexpr Extensions kZvfbfwma = 1U << 3;  // Zvfbfwma: widening multiply-adds of BF16 vectors

// What the files of one suffix are compiled for (kernels/build.sh).
constexpr Extensions kRvv = kV;                      // *_rvv.cpp
constexpr Extensions kRvvZvfh = kV | kZfh | kZvfh;   // *_zvfh.cpp
constexpr Extensions kRvvZvfbfwma = kV | kZvfbfwma;  // *_zvfbfwma.cpp

struct CpuFeatures {
  Extensions extensions;
  int64_t vlen_bits;  // 0 where there is no V

  [[nodiscard]] bool has(Extensions needed) const { return (extensions & needed) == needed; }
};

// Read once, then constant.
[[nodiscard]] const CpuFeatures& cpu_features();

// Adds `more` to what was found. For tests under an emulator that executes an extension of which
// its hwprobe says nothing (QEMU 10 and Zvfbfwma).
void assume_extensions(Extensions more);

// "none", "rvv", "rvv+zvfh" or "rvv+zvfbfwma": the sets that kernels need.
[[nodiscard]] const char* name_of_extensions(Extensions extensions);

}  // namespace sgl_rvv
