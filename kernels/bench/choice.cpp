#include "choice.h"

#include <stdexcept>

namespace kernel_bench {

using namespace sgl_rvv;

Type type_of(const Case& of) {
  const std::string type = word_or(of, "type", "bf16");
  for (const Type known : {Type::kBf16, Type::kFp16}) {
    if (type == name_of(known)) return known;
  }
  throw std::invalid_argument(of.text + ": no such type");
}

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

}  // namespace kernel_bench
