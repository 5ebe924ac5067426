// How the partial sums of one output of a row-major linear are added up, in every kernel alike.
#pragma once

#include <cstdint>

namespace sgl_rvv {

// The sum of `Count` values (a power of two) as a tree: first i and i + Count / 2, at last 0 and 1.
// `sums` is used up. Always inlined: a copy of its own would be shared between files that are
// compiled for different extensions.
template <int64_t Count>
inline __attribute__((always_inline)) float sum_tree(float* sums) {
  if constexpr (Count > 1) {
    for (int64_t i = 0; i < Count / 2; ++i) sums[i] += sums[i + Count / 2];
    return sum_tree<Count / 2>(sums);
  } else {
    return sums[0];
  }
}

}  // namespace sgl_rvv
