// out[M, N] = round(left[M, K] * weight[N, K]^T + bias[N]), the weight as it is, FP32 accumulation.
#pragma once

#include <cstdint>

namespace sgl_rvv {

struct RowMajorLinear;

// Computes all rows of the output columns [column_begin, column_end).
using RowMajorLinearKernel = void(const RowMajorLinear& call, int64_t column_begin,
                                  int64_t column_end);

}  // namespace sgl_rvv
