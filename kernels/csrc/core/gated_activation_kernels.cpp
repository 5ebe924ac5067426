// The gated activation kernels of the registry.

#include "core/gated_activation_kernels.h"

#include "core/registry.h"
#include "core/steps.h"

namespace sgl_rvv {
namespace {

constexpr Kernel gated_activation(const char* name, Type type, Technique technique,
                                  Extensions needs, GatedActivationKernel* entry) {
  return {name, type, type, type, type, {0, kStepColumns}, technique, needs, entry};
}

constexpr Kernel kKernels[] = {
#if defined(__riscv)
    gated_activation("gated_activation_bf16_lanes_rvv", Type::kBf16, Technique::kLanes, kRvv,
                     gated_activation_bf16_rvv),
    gated_activation("gated_activation_fp16_lanes_zvfh_rvv", Type::kFp16, Technique::kLanes,
                     kRvvZvfh, gated_activation_fp16_zvfh),
    gated_activation("gated_activation_fp32_lanes_rvv", Type::kFp32, Technique::kLanes, kRvv,
                     gated_activation_fp32_rvv),
#endif
    gated_activation("gated_activation_bf16_portable", Type::kBf16, Technique::kPortable, kNone,
                     gated_activation_bf16_portable),
    gated_activation("gated_activation_fp16_portable", Type::kFp16, Technique::kPortable, kNone,
                     gated_activation_fp16_portable),
    gated_activation("gated_activation_fp32_portable", Type::kFp32, Technique::kPortable, kNone,
                     gated_activation_fp32_portable),
};

}  // namespace

KernelList gated_activation_kernels() {
  return {kKernels, sizeof kKernels / sizeof kKernels[0]};
}

}  // namespace sgl_rvv
