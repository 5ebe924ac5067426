#include "workload.h"

#include <cstdio>
#include <stdexcept>

#include "core/registry.h"
#include "workloads.h"

namespace kernel_bench {
namespace {

using Maker = Workload(const Case& of);

struct Operator {
  sgl_rvv::Operation operation;
  Maker* make;
};

constexpr Operator kOperators[] = {
    {sgl_rvv::Operation::kPackedLinear, packed_linear},
    {sgl_rvv::Operation::kRowMajorLinear, row_major_linear},
    {sgl_rvv::Operation::kDecodeAttention, decode_attention},
    {sgl_rvv::Operation::kExtendAttention, extend_attention},
    {sgl_rvv::Operation::kDecodeAttentionInt8, decode_attention_int8},
    {sgl_rvv::Operation::kExtendAttentionInt8, extend_attention_int8},
    {sgl_rvv::Operation::kInt8Linear, int8_linear},
    {sgl_rvv::Operation::kTokenQuant, token_quant},
    {sgl_rvv::Operation::kNorm, norm},
    {sgl_rvv::Operation::kGatedActivation, gated_activation},
    {sgl_rvv::Operation::kRotaryEmbedding, rotary_embedding},
};

}  // namespace

Workload make_workload(const Case& of) {
  for (const Operator& known : kOperators) {
    if (of.operation == name_of(known.operation)) return known.make(of);
  }
  throw std::invalid_argument(of.text + ": no such operation");
}

void list_kernels() {
  for (const sgl_rvv::Kernel& kernel : sgl_rvv::kernels()) {
    std::printf("%s %s %s %s\n", kernel.name, name_of(kernel.operation()), name_of(kernel.left),
                sgl_rvv::cpu_features().has(kernel.needs) ? "available" : "unavailable");
  }
}

}  // namespace kernel_bench
