// The W8A8 kernels of the registry: quantisation of activations, and linears.

#include "core/kernels_portable.h"
#include "core/packed_layout.h"
#include "core/registry.h"
#if defined(__riscv)
#include "core/kernels_rvv.h"
#endif

namespace sgl_rvv {
namespace {

// The output is FP32, which the call may have rounded to BF16 or FP16.
constexpr Kernel linear(const char* name, int64_t rows, Technique technique, Extensions needs,
                        Int8LinearKernel* entry) {
  return {name,      Type::kInt8, Type::kInt8, Type::kFp32, Type::kInt8, {rows, kBlockColumns},
          technique, needs,       entry};
}

constexpr Kernel quant(const char* name, Type type, Technique technique, Extensions needs,
                       TokenQuantKernel* entry) {
  return {name, type, type, Type::kInt8, type, {0, 1}, technique, needs, entry};
}

#if defined(__riscv)
constexpr Kernel grouped(const char* name, int64_t rows, Int8LinearKernel* entry) {
  return linear(name, rows, Technique::kGrouped, kRvv, entry);
}
#endif

constexpr Kernel kKernels[] = {
#if defined(__riscv)
    grouped("int8_linear_m1_grouped_rvv", 1, int8_linear_grouped_rvv<1>),
    grouped("int8_linear_m2_grouped_rvv", 2, int8_linear_grouped_rvv<2>),
    grouped("int8_linear_m3_grouped_rvv", 3, int8_linear_grouped_rvv<3>),
    grouped("int8_linear_m4_grouped_rvv", 4, int8_linear_grouped_rvv<4>),
    grouped("int8_linear_m5_grouped_rvv", 5, int8_linear_grouped_rvv<5>),
    grouped("int8_linear_m6_grouped_rvv", 6, int8_linear_grouped_rvv<6>),
    linear("int8_linear_grouped_blocked_rvv", 0, Technique::kGroupedBlocked, kRvv,
           int8_linear_grouped_blocked_rvv),
    quant("token_quant_bf16_rvv", Type::kBf16, Technique::kTwoPass, kRvv, token_quant_bf16_rvv),
    quant("token_quant_fp16_rvv", Type::kFp16, Technique::kTwoPass, kRvv, token_quant_fp16_rvv),
    quant("token_quant_fp32_rvv", Type::kFp32, Technique::kTwoPass, kRvv, token_quant_fp32_rvv),
#endif
    linear("int8_linear_portable", 0, Technique::kPortable, kNone, int8_linear_portable),
    quant("token_quant_bf16_portable", Type::kBf16, Technique::kPortable, kNone,
          token_quant_bf16_portable),
    quant("token_quant_fp16_portable", Type::kFp16, Technique::kPortable, kNone,
          token_quant_fp16_portable),
    quant("token_quant_fp32_portable", Type::kFp32, Technique::kPortable, kNone,
          token_quant_fp32_portable),
};

}  // namespace

KernelList int8_kernels() {
  return {kKernels, sizeof kKernels / sizeof kKernels[0]};
}

}  // namespace sgl_rvv
