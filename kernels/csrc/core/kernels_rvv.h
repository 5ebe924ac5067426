// The kernels that need RVV 1.0. Their files are compiled with -march=rv64gcv and are only entered
// after cpu_features() has found V.
#pragma once

#include "core/packed_linear.h"

namespace sgl_rvv {

// Exactly `Rows` rows (call.m == Rows), 1 to kTileRows.
template <int Rows>
void packed_linear_bf16_npair_rvv(const PackedLinear& call, int64_t block_begin, int64_t block_end);

// Any number of rows.
PackedLinearKernel packed_linear_bf16_npair_blocked_rvv;

}  // namespace sgl_rvv
