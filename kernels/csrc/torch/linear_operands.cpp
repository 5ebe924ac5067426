#include "torch/linear_operands.h"

#include <ATen/ops/empty.h>

#include "torch/operands.h"

namespace sgl_rvv {
namespace {

using at::Tensor;

at::ScalarType torch_type(Type type) {
  switch (type) {
    case Type::kBf16:
      return at::kBFloat16;
    case Type::kFp16:
      return at::kHalf;
    case Type::kInt8:
      return at::kChar;
    case Type::kFp32:
      break;
  }
  return at::kFloat;
}

}  // namespace

void check_matrix_shape(const char* op, const char* name, const Tensor& tensor) {
  check_cpu(op, name, tensor);
  TORCH_CHECK_VALUE(tensor.dim() == 2, op, ": ", name, " must have 2 dimensions, but has shape ",
                    tensor.sizes());
  TORCH_CHECK_VALUE(tensor.size(1) > 0, op, ": ", name, " must have K > 0, but has shape ",
                    tensor.sizes());
}

Type check_matrix(const char* op, const char* name, const Tensor& tensor) {
  check_matrix_shape(op, name, tensor);
  return check_16_bits(op, name, tensor);
}

void check_same_type(const char* op, const char* name, const Tensor& tensor, const Tensor& mat1) {
  check_cpu(op, name, tensor);
  TORCH_CHECK_TYPE(tensor.scalar_type() == mat1.scalar_type(), op, ": ", name, " is ",
                   tensor.scalar_type(), " but mat1 is ", mat1.scalar_type());
}

void check_depth(const char* op, const char* name, int64_t depth, int64_t depth_of_mat1) {
  TORCH_CHECK_VALUE(depth == depth_of_mat1, op, ": ", name, " has K = ", depth,
                    " but mat1 has K = ", depth_of_mat1);
}

Tensor float_bias(const char* op, const std::optional<Tensor>& bias, int64_t n) {
  if (!bias.has_value() || !bias->defined()) return {};
  check_cpu(op, "bias", *bias);
  TORCH_CHECK_VALUE(bias->dim() == 1 && bias->size(0) == n, op, ": bias must have shape [", n,
                    "], but has ", bias->sizes());
  TORCH_CHECK_TYPE(at::isFloatingType(bias->scalar_type()), op,
                   ": bias must be of a floating type, but is ", bias->scalar_type());
  return bias->to(at::kFloat).contiguous();
}

Tensor scratch(int64_t count, Type type) {
  return at::empty({count}, at::TensorOptions().dtype(torch_type(type)));
}

}  // namespace sgl_rvv
