// The kernels that run anywhere: plain C++, the same results to the last bit.
#pragma once

#include "core/int8_linear.h"
#include "core/packed_linear.h"
#include "core/row_major_linear.h"
#include "core/token_quant.h"

namespace sgl_rvv {

// Any number of rows.
PackedLinearKernel packed_linear_bf16_portable;
PackedLinearKernel packed_linear_fp16_portable;
RowMajorLinearKernel row_major_linear_bf16_portable;
RowMajorLinearKernel row_major_linear_fp16_portable;
Int8LinearKernel int8_linear_portable;
TokenQuantKernel token_quant_bf16_portable;
TokenQuantKernel token_quant_fp16_portable;
TokenQuantKernel token_quant_fp32_portable;

}  // namespace sgl_rvv
