#include "workload.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "core/packed_layout.h"
#include "core/registry.h"
#include "operand.h"

namespace kernel_bench {
namespace {

using namespace sgl_rvv;

Type type_of(const Case& of) {
  const std::string type = word_or(of, "type", "bf16");
  for (const Type known : {Type::kBf16, Type::kFp16}) {
    if (type == name_of(known)) return known;
  }
  throw std::invalid_argument(of.text + ": no such type");
}

// What the torch operators choose on this CPU, or what `kernel` names.
const Kernel* kernel_of(const Case& of, Operation operation, Type type, int64_t rows) {
  const std::string forced = word_or(of, "kernel", "");
  if (forced.empty()) {
    const Kernel* chosen = select_kernel(operation, type, rows, cpu_features());
    if (chosen == nullptr) throw std::invalid_argument(of.text + ": no kernel for it");
    return chosen;
  }
  for (const Kernel& kernel : kernels()) {
    if (kernel.name != forced) continue;
    if (kernel.operation() == operation && kernel.left == type && accepts_rows(kernel, rows) &&
        cpu_features().has(kernel.needs)) {
      return &kernel;
    }
    throw std::invalid_argument(of.text + ": that kernel cannot compute this here");
  }
  throw std::invalid_argument(of.text + ": no such kernel");
}

struct PackedOperands {
  std::vector<uint16_t> left, weight, out;
  std::vector<float> prepared;
};

Workload packed_linear(const Case& of) {
  const int64_t m = number(of, "m"), n = number(of, "n"), k = number(of, "k");
  const Type type = type_of(of);
  const Kernel* kernel = kernel_of(of, Operation::kPackedLinear, type, m);
  auto operands = std::make_shared<PackedOperands>();
  operands->left = operand(type, m * k);
  operands->weight = operand(type, packed_elements(n, k));
  operands->out.resize(static_cast<size_t>(m * n));
  operands->prepared.resize(static_cast<size_t>(left_elements(m, k)));
  return {kernel->name, m * n * k, [=] {
            prepare_left_bf16(operands->left.data(), k, m, k, 0, left_tiles(m),
                              operands->prepared.data());
            const PackedLinear call = {m,
                                       n,
                                       k,
                                       operands->prepared.data(),
                                       operands->weight.data(),
                                       nullptr,
                                       operands->out.data(),
                                       n};
            (*std::get<PackedLinearKernel*>(kernel->entry))(call, 0, packed_blocks(n));
          }};
}

}  // namespace

Workload make_workload(const Case& of) {
  if (of.operation == "packed_linear") return packed_linear(of);
  throw std::invalid_argument(of.text + ": no such operation");
}

}  // namespace kernel_bench
