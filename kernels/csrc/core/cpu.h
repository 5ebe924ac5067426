// What this machine's vector unit is, asked of the kernel at run time: one binary serves every
// machine.
#pragma once

#include <cstdint>

namespace sgl_rvv {

struct CpuFeatures {
  bool rvv;           // RVV 1.0 (the V extension)
  int64_t vlen_bits;  // 0 where there is no V
};

// Read once, then constant.
[[nodiscard]] const CpuFeatures& cpu_features();

}  // namespace sgl_rvv
