// The linear kernels of the registry.

#include "core/kernels_portable.h"
#include "core/packed_layout.h"
#include "core/registry.h"
#if defined(__riscv)
#include "core/kernels_rvv.h"
#endif

namespace sgl_rvv {
namespace {

constexpr Kernel packed(const char* name, Type type, Type prepared_left, int64_t rows,
                        Technique technique, Extensions needs, PackedLinearKernel* entry) {
  return {name, type, type, type, prepared_left, {rows, kBlockColumns}, technique, needs, entry};
}

constexpr Kernel row_major(const char* name, Type type, Type prepared_left, Technique technique,
                           Extensions needs, RowMajorLinearKernel* entry) {
  return {name, type, type, type, prepared_left, {0, 1}, technique, needs, entry};
}

#if defined(__riscv)
constexpr Kernel npair(const char* name, int64_t rows, PackedLinearKernel* entry) {
  return packed(name, Type::kBf16, Type::kFp32, rows, Technique::kNPair, kRvv, entry);
}

constexpr Kernel widening(const char* name, int64_t rows, PackedLinearKernel* entry) {
  return packed(name, Type::kFp16, Type::kFp16, rows, Technique::kWidening, kRvvZvfh, entry);
}

#if defined(SGL_RVV_ZVFBFWMA)
constexpr Kernel widening_bf16(const char* name, int64_t rows, PackedLinearKernel* entry) {
  return packed(name, Type::kBf16, Type::kBf16, rows, Technique::kWidening, kRvvZvfbfwma, entry);
}
#endif
#endif

constexpr Kernel kKernels[] = {
#if defined(SGL_RVV_ZVFBFWMA)
    widening_bf16("packed_linear_bf16_m1_widening_zvfbfwma_rvv", 1,
                  packed_linear_bf16_widening_zvfbfwma_rvv<1>),
    widening_bf16("packed_linear_bf16_m2_widening_zvfbfwma_rvv", 2,
                  packed_linear_bf16_widening_zvfbfwma_rvv<2>),
    widening_bf16("packed_linear_bf16_m3_widening_zvfbfwma_rvv", 3,
                  packed_linear_bf16_widening_zvfbfwma_rvv<3>),
    widening_bf16("packed_linear_bf16_m4_widening_zvfbfwma_rvv", 4,
                  packed_linear_bf16_widening_zvfbfwma_rvv<4>),
    widening_bf16("packed_linear_bf16_m5_widening_zvfbfwma_rvv", 5,
                  packed_linear_bf16_widening_zvfbfwma_rvv<5>),
    widening_bf16("packed_linear_bf16_m6_widening_zvfbfwma_rvv", 6,
                  packed_linear_bf16_widening_zvfbfwma_rvv<6>),
    packed("packed_linear_bf16_widening_blocked_zvfbfwma_rvv", Type::kBf16, Type::kBf16, 0,
           Technique::kWideningBlocked, kRvvZvfbfwma,
           packed_linear_bf16_widening_blocked_zvfbfwma_rvv),
#endif
#if defined(__riscv)
    npair("packed_linear_bf16_m1_npair_rvv", 1, packed_linear_bf16_npair_rvv<1>),
    npair("packed_linear_bf16_m2_npair_rvv", 2, packed_linear_bf16_npair_rvv<2>),
    npair("packed_linear_bf16_m3_npair_rvv", 3, packed_linear_bf16_npair_rvv<3>),
    npair("packed_linear_bf16_m4_npair_rvv", 4, packed_linear_bf16_npair_rvv<4>),
    npair("packed_linear_bf16_m5_npair_rvv", 5, packed_linear_bf16_npair_rvv<5>),
    npair("packed_linear_bf16_m6_npair_rvv", 6, packed_linear_bf16_npair_rvv<6>),
    packed("packed_linear_bf16_npair_blocked_rvv", Type::kBf16, Type::kFp32, 0,
           Technique::kNPairBlocked, kRvv, packed_linear_bf16_npair_blocked_rvv),
    widening("packed_linear_fp16_m1_widening_zvfh_rvv", 1, packed_linear_fp16_widening_zvfh_rvv<1>),
    widening("packed_linear_fp16_m2_widening_zvfh_rvv", 2, packed_linear_fp16_widening_zvfh_rvv<2>),
    widening("packed_linear_fp16_m3_widening_zvfh_rvv", 3, packed_linear_fp16_widening_zvfh_rvv<3>),
    widening("packed_linear_fp16_m4_widening_zvfh_rvv", 4, packed_linear_fp16_widening_zvfh_rvv<4>),
    widening("packed_linear_fp16_m5_widening_zvfh_rvv", 5, packed_linear_fp16_widening_zvfh_rvv<5>),
    widening("packed_linear_fp16_m6_widening_zvfh_rvv", 6, packed_linear_fp16_widening_zvfh_rvv<6>),
    packed("packed_linear_fp16_widening_blocked_zvfh_rvv", Type::kFp16, Type::kFp16, 0,
           Technique::kWideningBlocked, kRvvZvfh, packed_linear_fp16_widening_blocked_zvfh_rvv),
    packed("packed_linear_fp16_npair_rvv", Type::kFp16, Type::kFp32, 0, Technique::kNPairBlocked,
           kRvv, packed_linear_fp16_npair_rvv),
    row_major("row_major_linear_bf16_along_k_rvv", Type::kBf16, Type::kFp32, Technique::kAlongK,
              kRvv, row_major_linear_bf16_along_k_rvv),
    row_major("row_major_linear_fp16_along_k_zvfh_rvv", Type::kFp16, Type::kFp16,
              Technique::kAlongK, kRvvZvfh, row_major_linear_fp16_along_k_zvfh_rvv),
    row_major("row_major_linear_fp16_along_k_rvv", Type::kFp16, Type::kFp32, Technique::kAlongK,
              kRvv, row_major_linear_fp16_along_k_rvv),
#endif
    packed("packed_linear_bf16_portable", Type::kBf16, Type::kFp32, 0, Technique::kPortable, kNone,
           packed_linear_bf16_portable),
    packed("packed_linear_fp16_portable", Type::kFp16, Type::kFp32, 0, Technique::kPortable, kNone,
           packed_linear_fp16_portable),
    row_major("row_major_linear_bf16_portable", Type::kBf16, Type::kFp32, Technique::kPortable,
              kNone, row_major_linear_bf16_portable),
    row_major("row_major_linear_fp16_portable", Type::kFp16, Type::kFp32, Technique::kPortable,
              kNone, row_major_linear_fp16_portable),
};

}  // namespace

KernelList linear_kernels() {
  return {kKernels, sizeof kKernels / sizeof kKernels[0]};
}

}  // namespace sgl_rvv
