// What every operator asks of a tensor, and what the kernels read of it.
//
// Every check names the operator and the argument. ValueError for shapes and values, TypeError for
// types.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "core/registry.h"

namespace sgl_rvv {

void check_cpu(const char* op, const char* name, const at::Tensor& tensor);

// BF16 or FP16; returns which.
Type check_16_bits(const char* op, const char* name, const at::Tensor& tensor);

// A tensor whose elements are adjacent in its last dimension: `tensor` itself, or a copy.
[[nodiscard]] at::Tensor with_adjacent(const at::Tensor& tensor);

[[nodiscard]] const uint16_t* bits_of(const at::Tensor& tensor);
[[nodiscard]] uint16_t* mutable_bits_of(const at::Tensor& tensor);

// The kernel for an operation, which the registry always has.
[[nodiscard]] const Kernel& chosen_kernel(Operation operation, Type type, int64_t rows);

}  // namespace sgl_rvv
