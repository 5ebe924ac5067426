// The norm kernels by name; which of them exist depends on the architecture (registry.h lists those
// that do).
#pragma once

#include "core/norm.h"

namespace sgl_rvv {

NormKernel norm_bf16_portable;
NormKernel norm_fp16_portable;
NormKernel norm_fp32_portable;

// RVV 1.0.
NormKernel norm_bf16_rvv;
NormKernel norm_fp32_rvv;

// RVV 1.0 and Zvfh.
NormKernel norm_fp16_zvfh;

}  // namespace sgl_rvv
