#include "core/registry.h"

#include "core/kernels_portable.h"
#include "core/packed_layout.h"
#if defined(__riscv)
#include "core/kernels_rvv.h"
#endif

namespace sgl_rvv {
namespace {

constexpr Kernel bf16_linear(const char* name, int64_t rows, bool whole_k, Technique technique,
                             Requirement requirement, PackedLinearKernel* entry) {
  return {name,        Operation::kPackedLinear,       Type::kBf16, Type::kBf16,
          Type::kBf16, {rows, kBlockColumns, whole_k}, technique,   requirement,
          entry};
}

constexpr Kernel kKernels[] = {
#if defined(__riscv)
    bf16_linear("packed_linear_bf16_m1_npair_rvv", 1, true, Technique::kNPair, Requirement::kRvv,
                packed_linear_bf16_npair_rvv<1>),
    bf16_linear("packed_linear_bf16_m2_npair_rvv", 2, true, Technique::kNPair, Requirement::kRvv,
                packed_linear_bf16_npair_rvv<2>),
    bf16_linear("packed_linear_bf16_m3_npair_rvv", 3, true, Technique::kNPair, Requirement::kRvv,
                packed_linear_bf16_npair_rvv<3>),
    bf16_linear("packed_linear_bf16_m4_npair_rvv", 4, true, Technique::kNPair, Requirement::kRvv,
                packed_linear_bf16_npair_rvv<4>),
    bf16_linear("packed_linear_bf16_m5_npair_rvv", 5, true, Technique::kNPair, Requirement::kRvv,
                packed_linear_bf16_npair_rvv<5>),
    bf16_linear("packed_linear_bf16_m6_npair_rvv", 6, true, Technique::kNPair, Requirement::kRvv,
                packed_linear_bf16_npair_rvv<6>),
    bf16_linear("packed_linear_bf16_npair_blocked_rvv", 0, false, Technique::kNPairBlocked,
                Requirement::kRvv, packed_linear_bf16_npair_blocked_rvv),
#endif
    bf16_linear("packed_linear_bf16_portable", 0, false, Technique::kPortable, Requirement::kNone,
                packed_linear_bf16_portable),
};

}  // namespace

KernelList kernels() {
  return {kKernels, sizeof kKernels / sizeof kKernels[0]};
}

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::kPackedLinear:
      return "packed_linear";
  }
  return "?";
}

const char* name_of(Type type) {
  switch (type) {
    case Type::kBf16:
      return "bf16";
  }
  return "?";
}

const char* name_of(Technique technique) {
  switch (technique) {
    case Technique::kNPair:
      return "npair";
    case Technique::kNPairBlocked:
      return "npair_blocked";
    case Technique::kPortable:
      return "portable";
  }
  return "?";
}

const char* name_of(Requirement requirement) {
  switch (requirement) {
    case Requirement::kNone:
      return "none";
    case Requirement::kRvv:
      return "rvv";
  }
  return "?";
}

bool satisfied(Requirement requirement, const CpuFeatures& cpu) {
  switch (requirement) {
    case Requirement::kNone:
      return true;
    case Requirement::kRvv:
      return cpu.rvv;
  }
  return false;
}

bool accepts_rows(const Kernel& kernel, int64_t rows) {
  return kernel.tile.rows == 0 || kernel.tile.rows == rows;
}

const Kernel* select_packed_linear(int64_t rows, const CpuFeatures& cpu) {
  for (const Kernel& kernel : kernels()) {
    if (kernel.operation == Operation::kPackedLinear && accepts_rows(kernel, rows) &&
        satisfied(kernel.requirement, cpu)) {
      return &kernel;
    }
  }
  return nullptr;
}

}  // namespace sgl_rvv
