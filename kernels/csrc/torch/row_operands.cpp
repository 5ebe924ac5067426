#include "torch/row_operands.h"

#include "torch/operands.h"
#include "torch/overlap.h"

namespace sgl_rvv {
namespace {

using at::Tensor;

// Whether the rows of a tensor, over all its dimensions, have one distance.
bool lies_evenly(const Tensor& tensor) {
  int64_t expected = -1;
  for (int64_t dim = tensor.dim() - 2; dim >= 0; --dim) {
    if (tensor.size(dim) == 1) continue;
    if (expected >= 0 && tensor.stride(dim) != expected) return false;
    expected = tensor.stride(dim) * tensor.size(dim);
  }
  return true;
}

}  // namespace

Type check_row_operand(const char* op, const char* name, const Tensor& tensor, int64_t least_dim) {
  check_cpu(op, name, tensor);
  TORCH_CHECK_TYPE(tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16 ||
                       tensor.scalar_type() == at::kHalf,
                   op, ": ", name, " must be bfloat16, float16 or float32, but is ",
                   tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.dim() >= least_dim && tensor.size(-1) > 0, op, ": ", name,
                    " must have at least ", least_dim,
                    " dimensions, the last one not empty, but has shape ", tensor.sizes());
  TORCH_CHECK_VALUE(tensor.stride(-1) == 1 || tensor.size(-1) == 1, op, ": ", name,
                    " must have adjacent elements in its last dimension, but has strides ",
                    tensor.strides());
  if (tensor.scalar_type() == at::kFloat) return Type::kFp32;
  return tensor.scalar_type() == at::kBFloat16 ? Type::kBf16 : Type::kFp16;
}

void check_alike(const char* op, const char* name, const Tensor& tensor, const Tensor& like,
                 const char* like_name) {
  check_row_operand(op, name, tensor);
  TORCH_CHECK_TYPE(tensor.scalar_type() == like.scalar_type(), op, ": ", name, " is ",
                   tensor.scalar_type(), " but ", like_name, " is ", like.scalar_type());
  TORCH_CHECK_VALUE(tensor.sizes() == like.sizes(), op, ": ", name, " must have shape ",
                    like.sizes(), ", but has ", tensor.sizes());
}

void check_per_column(const char* op, const char* name, const Tensor& tensor, const Tensor& like) {
  check_row_operand(op, name, tensor);
  TORCH_CHECK_TYPE(tensor.scalar_type() == like.scalar_type(), op, ": ", name, " is ",
                   tensor.scalar_type(), " but input is ", like.scalar_type());
  TORCH_CHECK_VALUE(tensor.dim() == 1 && tensor.size(0) == like.size(-1), op, ": ", name,
                    " must have shape [", like.size(-1), "], but has ", tensor.sizes());
}

void check_written_apart(const char* op, const char* name, const Tensor& written,
                         const char* other_name, const Tensor& other) {
  check_no_self_overlap(op, name, written);
  check_no_overlap(op, name, written, other_name, other);
}

RowShape row_shape(std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  const int64_t rows = first.numel() / first.size(-1);
  for (const Tensor* tensor : tensors) {
    if (!lies_evenly(*tensor)) return {rows, first.size(-2)};
  }
  return {rows, rows};
}

RowStretch row_stretch(const Tensor& tensor, const RowShape& shape, int64_t index) {
  if (shape.inner == shape.rows) {
    for (int64_t dim = tensor.dim() - 2; dim >= 0; --dim) {
      if (tensor.size(dim) > 1) return {0, tensor.stride(dim)};
    }
    return {0, tensor.size(-1)};
  }
  int64_t offset = 0;
  for (int64_t dim = tensor.dim() - 3; dim >= 0; --dim) {
    offset += index % tensor.size(dim) * tensor.stride(dim);
    index /= tensor.size(dim);
  }
  return {offset, tensor.stride(-2)};
}

}  // namespace sgl_rvv
