// The rotary embedding kernels by name; which of them exist depends on the architecture (registry.h
// lists those that do).
#pragma once

#include "core/rotary.h"

namespace sgl_rvv {

RotaryKernel rotary_bf16_portable;
RotaryKernel rotary_fp16_portable;
RotaryKernel rotary_fp32_portable;

// RVV 1.0.
RotaryKernel rotary_bf16_rvv;
RotaryKernel rotary_fp32_rvv;

// RVV 1.0 and Zvfh.
RotaryKernel rotary_fp16_zvfh;

}  // namespace sgl_rvv
