// norm: form (rmsnorm or fused_add_rmsnorm), m rows of n elements.

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

struct NormOperands {
  std::vector<uint16_t> input, residual, weight, out;
  std::vector<float> scratch;
};

}  // namespace

Workload norm(const Case& of) {
  const int64_t m = number(of, "m"), n = number(of, "n");
  const Type type = type_of(of);
  const std::string form = word_or(of, "form", "rmsnorm");
  const bool add = form == "fused_add_rmsnorm";
  if (!add && form != "rmsnorm") throw std::invalid_argument(of.text + ": no such form");
  const Kernel* kernel = kernel_of(of, Operation::kNorm, type, m);
  auto operands = std::make_shared<NormOperands>();
  operands->input = operand(type, m * n);
  if (add) operands->residual = operand(type, m * n);
  operands->weight = operand(type, n);
  operands->out.resize(static_cast<size_t>(m * n));
  operands->scratch.resize(static_cast<size_t>(norm_scratch_floats(n)));
  return {kernel->name, 0,
          [=] {
            const Norm call = {NormKind::kRmsWeight,
                               n,
                               operands->input.data(),
                               n,
                               add ? operands->residual.data() : nullptr,
                               n,
                               nullptr,
                               0,
                               operands->weight.data(),
                               nullptr,
                               add ? operands->input.data() : operands->out.data(),
                               n,
                               1e-5F};
            (*std::get<NormKernel*>(kernel->entry))(call, NormStage::kRows, 0, m,
                                                    operands->scratch.data());
          },
          m * n};
}

}  // namespace kernel_bench
