// The gated activation kernels by name; which of them exist depends on the architecture (registry.h
// lists those that do).
#pragma once

#include "core/gated_activation.h"

namespace sgl_rvv {

GatedActivationKernel gated_activation_bf16_portable;
GatedActivationKernel gated_activation_fp16_portable;
GatedActivationKernel gated_activation_fp32_portable;

// RVV 1.0.
GatedActivationKernel gated_activation_bf16_rvv;
GatedActivationKernel gated_activation_fp32_rvv;

// RVV 1.0 and Zvfh.
GatedActivationKernel gated_activation_fp16_zvfh;

}  // namespace sgl_rvv
