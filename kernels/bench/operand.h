// Operands with values that a model could have: no zeros, no infinities, about one in magnitude.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/registry.h"

namespace kernel_bench {

// `count` numbers of 16 bits. A short sequence is repeated by copying, since every loop round of an
// emulated and traced program costs a line of the trace.
[[nodiscard]] inline std::vector<uint16_t> repeated(int64_t count, uint16_t one) {
  constexpr size_t kPeriod = 251;  // prime: rows of an operand differ
  std::vector<uint16_t> values(static_cast<size_t>(count));
  const size_t first = std::min(values.size(), kPeriod);
  uint32_t state = 12345;
  for (size_t i = 0; i < first; ++i) {
    state = state * 1664525U + 1013904223U;
    // Sign and the upper mantissa bits vary: magnitudes between `one` and twice it.
    values[i] = static_cast<uint16_t>(one | (state >> 16 & 0x8000U) | (state >> 24 & 0x7fU));
  }
  for (size_t done = first; done < values.size();) {
    const size_t more = std::min(done / first * first, values.size() - done);
    std::memcpy(values.data() + done, values.data(), more * sizeof(uint16_t));
    done += more;
  }
  return values;
}

[[nodiscard]] inline std::vector<uint16_t> operand(sgl_rvv::Type type, int64_t count) {
  return repeated(count, type == sgl_rvv::Type::kBf16 ? 0x3f80 : 0x3c00);
}

}  // namespace kernel_bench
