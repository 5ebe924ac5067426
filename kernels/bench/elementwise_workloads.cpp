// gated_activation: form (silu, gelu or gelu_tanh), m rows of n outputs. rotary_embedding: form
// (neox or interleaved), m tokens of `heads` queries and `kv_heads` keys of `head` elements, all
// turned.

#include <cmath>
#include <memory>
#include <stdexcept>
#include <variant>
#include <vector>

#include "choice.h"
#include "operand.h"
#include "workloads.h"

namespace kernel_bench {
namespace {

using namespace sgl_rvv;

struct ElementwiseOperands {
  std::vector<uint16_t> in, more, out, more_out;
  std::vector<int64_t> positions;
};

Activation activation_of(const Case& of) {
  const std::string form = word_or(of, "form", "silu");
  if (form == "silu") return Activation::kSilu;
  if (form == "gelu") return Activation::kGelu;
  if (form == "gelu_tanh") return Activation::kGeluTanh;
  throw std::invalid_argument(of.text + ": no such form");
}

}  // namespace

Workload gated_activation(const Case& of) {
  const int64_t m = number(of, "m"), n = number(of, "n");
  const Type type = type_of(of);
  const Activation activation = activation_of(of);
  const Kernel* kernel = kernel_of(of, Operation::kGatedActivation, type, m);
  auto operands = std::make_shared<ElementwiseOperands>();
  operands->in = operand(type, m * 2 * n);
  operands->out.resize(static_cast<size_t>(m * n));
  return {kernel->name, 0,
          [=] {
            const uint16_t* in = operands->in.data();
            const GatedActivation call = {activation,           n, in, in + n, 2 * n,
                                          operands->out.data(), n};
            (*std::get<GatedActivationKernel*>(kernel->entry))(call, 0, m* activation_blocks(n));
          },
          m * n};
}

Workload rotary_embedding(const Case& of) {
  const int64_t m = number(of, "m"), heads = number(of, "heads"), kv_heads = number(of, "kv_heads");
  const int64_t head = number(of, "head");
  const std::string form = word_or(of, "form", "neox");
  if (form != "neox" && form != "interleaved") {
    throw std::invalid_argument(of.text + ": no such form");
  }
  if (head % 2 != 0 || head > kLargestRotary) {
    throw std::invalid_argument(of.text + ": no kernel takes such heads");
  }
  const Type type = type_of(of);
  const Kernel* kernel = kernel_of(of, Operation::kRotaryEmbedding, type, m);
  auto operands = std::make_shared<ElementwiseOperands>();
  operands->in = operand(type, m * (heads + kv_heads) * head);
  operands->more = operand(type, m * head);
  operands->out.resize(operands->in.size());
  for (int64_t token = 0; token < m; ++token) operands->positions.push_back(token);
  return {kernel->name, 0,
          [=] {
            const int64_t all = (heads + kv_heads) * head;
            const uint16_t* in = operands->in.data();
            uint16_t* out = operands->out.data();
            const Rotary call = {
                form == "neox",
                head,
                head,
                {heads, in, all, head, out, all, head},
                {kv_heads, in + heads * head, all, head, out + heads * head, all, head},
                operands->positions.data(),
                operands->more.data(),
                head,
                false};
            (*std::get<RotaryKernel*>(kernel->entry))(call, 0, m*(heads + kv_heads));
          },
          m * (heads + kv_heads) * head};
}

}  // namespace kernel_bench
