// The kernels that run anywhere: plain C++, the same results to the last bit.
#pragma once

#include "core/packed_linear.h"
#include "core/row_major_linear.h"

namespace sgl_rvv {

// Any number of rows.
PackedLinearKernel packed_linear_bf16_portable;
PackedLinearKernel packed_linear_fp16_portable;
RowMajorLinearKernel row_major_linear_bf16_portable;
RowMajorLinearKernel row_major_linear_fp16_portable;

}  // namespace sgl_rvv
