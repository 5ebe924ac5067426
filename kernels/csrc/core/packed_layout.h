// The packed layout of a weight [N, K] of 16-bit or 8-bit elements, version 1: [ceil(N / 32), K,
// 32].
//
// Element (n, k) is at ((n / 32) * K + k) * 32 + n % 32; rows n >= N of the last block are zero.
// The bytes are the same at every VLEN and on every architecture. A block is what one kernel call
// streams: 32 contiguous elements for each k, 32 columns of the output.
#pragma once

#include <cstdint>

namespace sgl_rvv {

constexpr int64_t kPackedLayoutVersion = 1;
constexpr int64_t kBlockColumns = 32;

[[nodiscard]] constexpr int64_t packed_blocks(int64_t n) {
  return (n + kBlockColumns - 1) / kBlockColumns;
}

[[nodiscard]] constexpr int64_t packed_elements(int64_t n, int64_t k) {
  return packed_blocks(n) * k * kBlockColumns;
}

// Where block `block` begins, in elements.
[[nodiscard]] constexpr int64_t packed_block_offset(int64_t block, int64_t k) {
  return block * k * kBlockColumns;
}

}  // namespace sgl_rvv
