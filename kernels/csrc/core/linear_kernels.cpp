// The linear kernels of the registry.

#include "core/kernels_portable.h"
#include "core/packed_layout.h"
#include "core/registry.h"
#if defined(__riscv)
#include "core/kernels_rvv.h"
#endif

namespace sgl_rvv {
namespace {

constexpr Kernel packed_bf16(const char* name, int64_t rows, bool whole_k, Technique technique,
                             Extensions needs, PackedLinearKernel* entry) {
  return {name,        Type::kBf16, Type::kBf16,
          Type::kBf16, Type::kFp32, {rows, kBlockColumns, whole_k},
          technique,   needs,       entry};
}

#if defined(__riscv)
constexpr Kernel npair(const char* name, int64_t rows, PackedLinearKernel* entry) {
  return packed_bf16(name, rows, true, Technique::kNPair, kRvv, entry);
}
#endif

constexpr Kernel kKernels[] = {
#if defined(__riscv)
    npair("packed_linear_bf16_m1_npair_rvv", 1, packed_linear_bf16_npair_rvv<1>),
    npair("packed_linear_bf16_m2_npair_rvv", 2, packed_linear_bf16_npair_rvv<2>),
    npair("packed_linear_bf16_m3_npair_rvv", 3, packed_linear_bf16_npair_rvv<3>),
    npair("packed_linear_bf16_m4_npair_rvv", 4, packed_linear_bf16_npair_rvv<4>),
    npair("packed_linear_bf16_m5_npair_rvv", 5, packed_linear_bf16_npair_rvv<5>),
    npair("packed_linear_bf16_m6_npair_rvv", 6, packed_linear_bf16_npair_rvv<6>),
    packed_bf16("packed_linear_bf16_npair_blocked_rvv", 0, false, Technique::kNPairBlocked, kRvv,
                packed_linear_bf16_npair_blocked_rvv),
#endif
    packed_bf16("packed_linear_bf16_portable", 0, false, Technique::kPortable, kNone,
                packed_linear_bf16_portable),
};

}  // namespace

KernelList linear_kernels() {
  return {kKernels, sizeof kKernels / sizeof kKernels[0]};
}

}  // namespace sgl_rvv
