// out[M, N] = round(input[M, K] * weight[N, K]^T) in BF16, the weight as it is: the kernel's
// operands prepared as in the operator linear_rowmajor.
#pragma once

#include <memory>

#include "core/row_major_linear.h"
#include "core/types.h"
#include "linear/phases.h"

namespace sgl_rvv {

// Columns that one thread takes at once: the kernel works on four at a time.
constexpr int64_t kColumnsAtOnce = 4;

// Rows of `input` and `weight` lie `ld` and `weight_ld` elements apart, those of `out` N.
template <int64_t M, int Threads>
void row_major_linear_bf16(const void* input, int64_t ld, const void* weight, int64_t weight_ld,
                           int64_t n, int64_t k, void* out) {
  const auto* left = static_cast<const uint16_t*>(input);
  const std::unique_ptr<float[]> prepared(new float[static_cast<size_t>(M * row_major_depth(k))]);
  const RowMajorLinear call = {M,
                               n,
                               k,
                               prepared.get(),
                               static_cast<const uint16_t*>(weight),
                               weight_ld,
                               nullptr,
                               static_cast<uint16_t*>(out),
                               n};
  in_two_phases<Threads>(
      M,
      [&](int64_t begin, int64_t end) {
        prepare_row_major_left(Type::kBf16, Type::kFp32, left, ld, k, begin, end, prepared.get());
      },
      (n + kColumnsAtOnce - 1) / kColumnsAtOnce,
      [&](int64_t begin, int64_t end) {
        const int64_t first = begin * kColumnsAtOnce;
        const int64_t last = std::min(end * kColumnsAtOnce, n);
#if defined(__riscv_vector)
        row_major_linear_bf16_along_k_rvv(call, first, last);
#else
        row_major_linear_bf16_portable(call, first, last);
#endif
      });
}

}  // namespace sgl_rvv
