// packed_linear and row_major_linear: m, n, k. A call prepares the left operand and runs the
// kernel, as the torch operators do.

#include <memory>
#include <variant>
#include <vector>

#include "choice.h"
#include "core/packed_layout.h"
#include "operand.h"
#include "workloads.h"

namespace kernel_bench {
namespace {

using namespace sgl_rvv;

struct LinearOperands {
  std::vector<uint16_t> left, weight, out;
  std::vector<float> prepared;  // or FP16, in half of it
};

std::shared_ptr<LinearOperands> operands_of(Type type, int64_t m, int64_t n, int64_t k,
                                            int64_t weight_elements, int64_t prepared_elements) {
  auto operands = std::make_shared<LinearOperands>();
  operands->left = operand(type, m * k);
  operands->weight = operand(type, weight_elements);
  operands->out.resize(static_cast<size_t>(m * n));
  operands->prepared.resize(static_cast<size_t>(prepared_elements));
  return operands;
}

}  // namespace

Workload packed_linear(const Case& of) {
  const int64_t m = number(of, "m"), n = number(of, "n"), k = number(of, "k");
  const Type type = type_of(of);
  const Kernel* kernel = kernel_of(of, Operation::kPackedLinear, type, m);
  auto operands = operands_of(type, m, n, k, packed_elements(n, k), left_elements(m, k));
  return {kernel->name, m * n * k, [=] {
            prepare_left(type, kernel->prepared_left, operands->left.data(), k, m, k, 0,
                         left_tiles(m), operands->prepared.data());
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

Workload row_major_linear(const Case& of) {
  const int64_t m = number(of, "m"), n = number(of, "n"), k = number(of, "k");
  const Type type = type_of(of);
  const Kernel* kernel = kernel_of(of, Operation::kRowMajorLinear, type, m);
  auto operands = operands_of(type, m, n, k, n * k, m * row_major_depth(k));
  return {kernel->name, m * n * k, [=] {
            prepare_row_major_left(type, kernel->prepared_left, operands->left.data(), k, k, 0, m,
                                   operands->prepared.data());
            const RowMajorLinear call = {m,
                                         n,
                                         k,
                                         operands->prepared.data(),
                                         operands->weight.data(),
                                         k,
                                         nullptr,
                                         operands->out.data(),
                                         n};
            (*std::get<RowMajorLinearKernel*>(kernel->entry))(call, 0, n);
          }};
}

}  // namespace kernel_bench
