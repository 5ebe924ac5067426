// out[M, N] = round(input[M, K] * weight[N, K]^T) in BF16 on a packed weight: the kernels' operands
// prepared as in the operator weight_packed_linear_out, for generated code that knows its M.
#pragma once

#include <cstring>
#include <memory>

#include "core/packed_linear.h"
#include "core/types.h"
#include "linear/phases.h"

namespace sgl_rvv {

// By the registry's order: a kernel of exactly M rows, else the blocked one.
template <int64_t M>
void packed_linear_kernel(const PackedLinear& call, int64_t block_begin, int64_t block_end) {
#if defined(__riscv_vector)
  if constexpr (M <= kTileRows) {
    packed_linear_bf16_npair_rvv<static_cast<int>(M)>(call, block_begin, block_end);
  } else {
    packed_linear_bf16_npair_blocked_rvv(call, block_begin, block_end);
  }
#else
  packed_linear_bf16_portable(call, block_begin, block_end);
#endif
}

// Rows of `input` lie `ld` elements apart, those of `out` N.
template <int64_t M, int Threads>
void packed_linear_bf16(const void* input, int64_t ld, const void* weight, int64_t n, int64_t k,
                        void* out) {
  const auto* left = static_cast<const uint16_t*>(input);
  const auto* packed = static_cast<const uint16_t*>(weight);
  std::unique_ptr<uint32_t[]> aligned;
  if (reinterpret_cast<uintptr_t>(packed) % alignof(uint32_t) != 0) {
    const auto elements = static_cast<size_t>(packed_elements(n, k));
    aligned.reset(new uint32_t[elements / 2]);
    std::memcpy(aligned.get(), packed, elements * sizeof *packed);
    packed = reinterpret_cast<const uint16_t*>(aligned.get());
  }
  const std::unique_ptr<float[]> prepared(new float[static_cast<size_t>(left_elements(M, k))]);
  const PackedLinear call = {M, n, k, prepared.get(), packed, nullptr, static_cast<uint16_t*>(out),
                             n};
  in_two_phases<Threads>(
      left_tiles(M),
      [&](int64_t begin, int64_t end) {
        prepare_left(Type::kBf16, Type::kFp32, left, ld, M, k, begin, end, prepared.get());
      },
      packed_blocks(n),
      [&](int64_t begin, int64_t end) { packed_linear_kernel<M>(call, begin, end); });
}

}  // namespace sgl_rvv
