#include "torch/operands.h"

namespace sgl_rvv {

using at::Tensor;

void check_cpu(const char* op, const char* name, const Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.device().is_cpu(), op, ": ", name, " must be on the CPU, but is on ",
                    tensor.device());
}

Type check_16_bits(const char* op, const char* name, const Tensor& tensor) {
  const bool bf16 = tensor.scalar_type() == at::kBFloat16;
  TORCH_CHECK_TYPE(bf16 || tensor.scalar_type() == at::kHalf, op, ": ", name,
                   " must be bfloat16 or float16, but is ", tensor.scalar_type());
  return bf16 ? Type::kBf16 : Type::kFp16;
}

Tensor with_adjacent(const Tensor& tensor) {
  return tensor.stride(-1) == 1 ? tensor : tensor.contiguous();
}

const uint16_t* bits_of(const Tensor& tensor) {
  return static_cast<const uint16_t*>(tensor.const_data_ptr());
}

uint16_t* mutable_bits_of(const Tensor& tensor) {
  return static_cast<uint16_t*>(tensor.mutable_data_ptr());
}

const Kernel& chosen_kernel(Operation operation, Type type, int64_t rows) {
  const Kernel* kernel = select_kernel(operation, type, rows, cpu_features());
  TORCH_INTERNAL_ASSERT(kernel != nullptr, "no kernel for ", name_of(operation));
  return *kernel;
}

}  // namespace sgl_rvv
