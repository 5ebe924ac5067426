// The operands of a linear, beside what operands.h has: what is checked, and what the kernels read.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

#include "core/types.h"

namespace sgl_rvv {

// A matrix on the CPU with at least one column.
void check_matrix_shape(const char* op, const char* name, const at::Tensor& tensor);

// A matrix of BF16 or FP16 on the CPU, with at least one column; returns which.
[[nodiscard]] Type check_matrix(const char* op, const char* name, const at::Tensor& tensor);

// `tensor` is of the type of mat1 and on the CPU.
void check_same_type(const char* op, const char* name, const at::Tensor& tensor,
                     const at::Tensor& mat1);

// K of mat2 and of mat1.
void check_depth(const char* op, const char* name, int64_t depth, int64_t depth_of_mat1);

// The bias [n] of any floating type as contiguous FP32, or an undefined tensor where there is none.
[[nodiscard]] at::Tensor float_bias(const char* op, const std::optional<at::Tensor>& bias,
                                    int64_t n);

// An uninitialised vector of `count` elements of `type`.
[[nodiscard]] at::Tensor scratch(int64_t count, Type type);

}  // namespace sgl_rvv
