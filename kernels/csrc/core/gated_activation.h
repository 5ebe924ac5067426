// Gated activations of BF16, FP16 or FP32: out[r, c] = act(gate[r, c]) * up[r, c], FP32 between
// input and output and rounded once (to nearest even; a BF16 zero is +0).
//
//   SiLU       act(x) = x / (1 + exp(-x))
//   GELU       act(x) = x * erfc(-x / sqrt(2)) / 2
//   GELU tanh  act(x) = x * (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
//                     = x / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3)))
//
// act() is within 2^-18 + x^2 2^-23 of these, relative to its value, for |x| <= 10; further down,
// where act(x) goes to 0, it ends at x * 2^-126 (see sigmoid.h). act(NaN) is NaN, act(-inf) -inf or
// NaN.
#pragma once

#include <cstdint>

#include "core/types.h"

namespace sgl_rvv {

enum class Activation { kSilu, kGelu, kGeluTanh };

// Elements of a row are adjacent; strides in elements.
struct GatedActivation {
  Activation activation;
  int64_t columns;
  const void* gate;
  const void* up;
  int64_t stride;  // of gate and of up
  void* out;
  int64_t out_stride;
};

// The unit of sharing out: this many columns of one row, or what is left of it.
constexpr int64_t kActivationBlock = 512;

[[nodiscard]] constexpr int64_t activation_blocks(int64_t columns) {
  return (columns + kActivationBlock - 1) / kActivationBlock;
}

// Computes units [begin, end) of rows * activation_blocks(columns), row by row.
using GatedActivationKernel = void(const GatedActivation& call, int64_t begin, int64_t end);

}  // namespace sgl_rvv
