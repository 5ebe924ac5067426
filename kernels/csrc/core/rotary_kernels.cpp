// The rotary embedding kernels of the registry.

#include "core/rotary_kernels.h"

#include "core/registry.h"
#include "core/steps.h"

namespace sgl_rvv {
namespace {

constexpr Kernel rotary(const char* name, Type type, Technique technique, Extensions needs,
                        RotaryKernel* entry) {
  return {name, type, type, type, type, {0, kStepColumns}, technique, needs, entry};
}

constexpr Kernel kKernels[] = {
#if defined(__riscv)
    rotary("rotary_embedding_bf16_lanes_rvv", Type::kBf16, Technique::kLanes, kRvv,
           rotary_bf16_rvv),
    rotary("rotary_embedding_fp16_lanes_zvfh_rvv", Type::kFp16, Technique::kLanes, kRvvZvfh,
           rotary_fp16_zvfh),
    rotary("rotary_embedding_fp32_lanes_rvv", Type::kFp32, Technique::kLanes, kRvv,
           rotary_fp32_rvv),
#endif
    rotary("rotary_embedding_bf16_portable", Type::kBf16, Technique::kPortable, kNone,
           rotary_bf16_portable),
    rotary("rotary_embedding_fp16_portable", Type::kFp16, Technique::kPortable, kNone,
           rotary_fp16_portable),
    rotary("rotary_embedding_fp32_portable", Type::kFp32, Technique::kPortable, kNone,
           rotary_fp32_portable),
};

}  // namespace

KernelList rotary_kernels() {
  return {kKernels, sizeof kKernels / sizeof kKernels[0]};
}

}  // namespace sgl_rvv
