// The norm kernels of the registry.

#include "core/norm_kernels.h"

#include "core/registry.h"

namespace sgl_rvv {
namespace {

constexpr Kernel norm(const char* name, Type type, Technique technique, Extensions needs,
                      NormKernel* entry) {
  return {name, type, type, type, type, {0, kNormBlock}, technique, needs, entry};
}

constexpr Kernel kKernels[] = {
#if defined(__riscv)
    norm("norm_bf16_lanes_rvv", Type::kBf16, Technique::kLanes, kRvv, norm_bf16_rvv),
    norm("norm_fp16_lanes_zvfh_rvv", Type::kFp16, Technique::kLanes, kRvvZvfh, norm_fp16_zvfh),
    norm("norm_fp32_lanes_rvv", Type::kFp32, Technique::kLanes, kRvv, norm_fp32_rvv),
#endif
    norm("norm_bf16_portable", Type::kBf16, Technique::kPortable, kNone, norm_bf16_portable),
    norm("norm_fp16_portable", Type::kFp16, Technique::kPortable, kNone, norm_fp16_portable),
    norm("norm_fp32_portable", Type::kFp32, Technique::kPortable, kNone, norm_fp32_portable),
};

}  // namespace

KernelList norm_kernels() {
  return {kKernels, sizeof kKernels / sizeof kKernels[0]};
}

}  // namespace sgl_rvv
