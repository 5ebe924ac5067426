#include "workload.h"

#include <memory>
#include <stdexcept>
#include <vector>

#include "core/packed_layout.h"
#include "core/registry.h"
#include "operand.h"

namespace kernel_bench {
namespace {

using namespace sgl_rvv;

struct PackedOperands {
  std::vector<uint16_t> left, weight, out;
  std::vector<float> prepared;
};

Workload packed_linear(const Case& of) {
  const int64_t m = number(of, "m"), n = number(of, "n"), k = number(of, "k");
  const Kernel* kernel = select_packed_linear(m, cpu_features());
  auto operands = std::make_shared<PackedOperands>();
  operands->left = bf16_operand(m * k);
  operands->weight = bf16_operand(packed_elements(n, k));
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
            kernel->packed_linear(call, 0, packed_blocks(n));
          }};
}

}  // namespace

Workload make_workload(const Case& of) {
  if (of.operation == "packed_linear") return packed_linear(of);
  throw std::invalid_argument(of.text + ": no such operation");
}

}  // namespace kernel_bench
