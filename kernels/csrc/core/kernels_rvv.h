// The kernels that need RVV 1.0, and those that need Zvfh or Zvfbfwma beside it. Their files are
// compiled for these extensions (kernels/build.sh) and are only entered after cpu_features() has
// found them.
#pragma once

#include "core/int8_linear.h"
#include "core/packed_linear.h"
#include "core/row_major_linear.h"
#include "core/token_quant.h"

namespace sgl_rvv {

// Exactly `Rows` rows (call.m == Rows), 1 to kTileRows.
template <int Rows>
void packed_linear_bf16_npair_rvv(const PackedLinear& call, int64_t block_begin, int64_t block_end);

// Exactly `Rows` rows (call.m == Rows), 1 to kInt8LargestTile.
template <int Rows>
void int8_linear_grouped_rvv(const Int8Linear& call, int64_t block_begin, int64_t block_end);

// Any number of rows.
Int8LinearKernel int8_linear_grouped_blocked_rvv;
TokenQuantKernel token_quant_bf16_rvv;
TokenQuantKernel token_quant_fp16_rvv;
TokenQuantKernel token_quant_fp32_rvv;
PackedLinearKernel packed_linear_bf16_npair_blocked_rvv;
PackedLinearKernel packed_linear_fp16_npair_rvv;
RowMajorLinearKernel row_major_linear_bf16_along_k_rvv;
RowMajorLinearKernel row_major_linear_fp16_along_k_rvv;

// Zvfh. Exactly `Rows` rows, 1 to kTileRows.
template <int Rows>
void packed_linear_fp16_widening_zvfh_rvv(const PackedLinear& call, int64_t block_begin,
                                          int64_t block_end);

// Zvfh. Any number of rows.
PackedLinearKernel packed_linear_fp16_widening_blocked_zvfh_rvv;
RowMajorLinearKernel row_major_linear_fp16_along_k_zvfh_rvv;

// Zvfbfwma. Exactly `Rows` rows, 1 to kTileRows.
template <int Rows>
void packed_linear_bf16_widening_zvfbfwma_rvv(const PackedLinear& call, int64_t block_begin,
                                              int64_t block_end);

// Zvfbfwma. Any number of rows.
PackedLinearKernel packed_linear_bf16_widening_blocked_zvfbfwma_rvv;

}  // namespace sgl_rvv
