#include "core/registry.h"

#include <vector>

namespace sgl_rvv {

KernelList kernels() {
  static const std::vector<Kernel> all = [] {
    std::vector<Kernel> joined;
    for (const KernelList& family :
         {linear_kernels(), attention_kernels(), int8_kernels(), norm_kernels(),
          gated_activation_kernels(), rotary_kernels()}) {
      joined.insert(joined.end(), family.begin(), family.end());
    }
    return joined;
  }();
  return {all.data(), all.size()};
}

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::kPackedLinear:
      return "packed_linear";
    case Operation::kRowMajorLinear:
      return "row_major_linear";
    case Operation::kDecodeAttention:
      return "decode_attention";
    case Operation::kExtendAttention:
      return "extend_attention";
    case Operation::kDecodeAttentionInt8:
      return "decode_attention_int8";
    case Operation::kExtendAttentionInt8:
      return "extend_attention_int8";
    case Operation::kStoreKv:
      return "store_kv";
    case Operation::kInt8Linear:
      return "int8_linear";
    case Operation::kTokenQuant:
      return "token_quant";
    case Operation::kNorm:
      return "norm";
    case Operation::kGatedActivation:
      return "gated_activation";
    case Operation::kRotaryEmbedding:
      return "rotary_embedding";
  }
  return "?";
}

const char* name_of(Type type) {
  switch (type) {
    case Type::kBf16:
      return "bf16";
    case Type::kFp16:
      return "fp16";
    case Type::kFp32:
      return "fp32";
    case Type::kInt8:
      return "int8";
  }
  return "?";
}

const char* name_of(Technique technique) {
  switch (technique) {
    case Technique::kNPair:
      return "npair";
    case Technique::kNPairBlocked:
      return "npair_blocked";
    case Technique::kWidening:
      return "widening";
    case Technique::kWideningBlocked:
      return "widening_blocked";
    case Technique::kAlongK:
      return "along_k";
    case Technique::kTiled:
      return "tiled";
    case Technique::kGrouped:
      return "grouped";
    case Technique::kGroupedBlocked:
      return "grouped_blocked";
    case Technique::kTwoPass:
      return "two_pass";
    case Technique::kLanes:
      return "lanes";
    case Technique::kPortable:
      return "portable";
  }
  return "?";
}

bool accepts_rows(const Kernel& kernel, int64_t rows) {
  return kernel.tile.rows == 0 || kernel.tile.rows == rows;
}

const Kernel* select_kernel(Operation operation, Type type, int64_t rows, const CpuFeatures& cpu) {
  for (const Kernel& kernel : kernels()) {
    if (kernel.operation() == operation && kernel.left == type && accepts_rows(kernel, rows) &&
        cpu.has(kernel.needs)) {
      return &kernel;
    }
  }
  return nullptr;
}

}  // namespace sgl_rvv
