// Quantisation of activations to INT8: symmetric, one scale a row (token).
//
//   largest = max |x_i|, at least kLeastMagnitude
//   scale   = largest / 127                     FP32, rounded once
//   code_i  = x_i * (127 / largest)             the factor rounded to FP32, the exact product
//   rounded
//                                               once, to the nearest integer, ties to even
// whatever the rounding mode in force is. Codes lie in [-127, 127], and x_i differs from scale *
// code_i by half a scale and a rounding error at most.
//
//   A row of zeros, or of numbers below kLeastMagnitude * 2^-8: codes 0, scale kLeastMagnitude /
//   127. A row with an infinity: scale infinity; codes +-127 at infinities, 0 elsewhere. A row with
//   a NaN: scale NaN (0x7fc00000), codes 0; what is multiplied with it becomes NaN.
#pragma once

#include <cstdint>

#include "core/types.h"

namespace sgl_rvv {

// Far below any activation, and 127 / kLeastMagnitude is a number.
constexpr float kLeastMagnitude = 0x1p-100F;

struct TokenQuant {
  int64_t k;
  const void* rows;  // [m, k] of BF16, FP16 or FP32, aligned to its elements
  int64_t stride;    // elements from one row to the next
  int8_t* codes;     // [m, k]
  float* scales;     // [m]
};

// Quantises rows [row_begin, row_end); rows are independent: call it in parallel over rows.
using TokenQuantKernel = void(const TokenQuant& call, int64_t row_begin, int64_t row_end);

}  // namespace sgl_rvv
