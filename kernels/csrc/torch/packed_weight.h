// The packed form of weights (core/packed_layout.h), as the linears take it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sgl_rvv {

// Packs a weight [N, K] of BF16, FP16 or INT8 with N > 0.
[[nodiscard]] at::Tensor pack_weight(const char* op, const char* name, const at::Tensor& weight);

// The packed form of `mat2`, which is [N, K] or, where `is_packed`, [ceil(N / 32), K, 32], checked
// against the K of mat1, and fit for 4-byte loads. The type is the caller's to check.
[[nodiscard]] at::Tensor packed_weight(const char* op, const at::Tensor& mat2, bool is_packed,
                                       int64_t depth_of_mat1);

}  // namespace sgl_rvv
