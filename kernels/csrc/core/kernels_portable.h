// The kernels that run anywhere: plain C++, the same results to within the order of rounding.
#pragma once

#include "core/packed_linear.h"

namespace sgl_rvv {

// Any number of rows.
PackedLinearKernel packed_linear_bf16_portable;

}  // namespace sgl_rvv
