// What the operators on rows ask of their tensors: norms, gated activations, rotary embeddings.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/types.h"

namespace sgl_rvv {

// BF16, FP16 or FP32 on the CPU, of at least `least_dim` dimensions, elements adjacent in the last
// one, which is not empty; returns which.
Type check_row_operand(const char* op, const char* name, const at::Tensor& tensor,
                       int64_t least_dim = 1);

// `tensor` is that as well, and has the type and the sizes of `like`, which is called `like_name`.
void check_alike(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& like,
                 const char* like_name);

// A contiguous vector of the type of `like` with as many elements as its last dimension.
void check_per_column(const char* op, const char* name, const at::Tensor& tensor,
                      const at::Tensor& like);

// Written in place: overlaps neither itself nor `other`.
void check_written_apart(const char* op, const char* name, const at::Tensor& written,
                         const char* other_name, const at::Tensor& other);

// The rows of a tensor as stretches of rows that lie evenly: all dimensions but the last are
// walked, the last of them at once where they cannot be joined to fewer.
struct RowShape {
  int64_t rows;
  int64_t inner;  // rows that lie evenly
};
[[nodiscard]] RowShape row_shape(std::initializer_list<const at::Tensor*> tensors);

// The first row of stretch `index`, and the distance of its rows, in elements.
struct RowStretch {
  int64_t offset;
  int64_t stride;
};
[[nodiscard]] RowStretch row_stretch(const at::Tensor& tensor, const RowShape& shape,
                                     int64_t index);

}  // namespace sgl_rvv
