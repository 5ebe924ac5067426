// Quantisation of activations in plain C++. Requires nothing. Compiled with -ffp-contract=off.

#include <algorithm>
#include <cstring>

#include "core/bf16.h"
#include "core/fp16.h"
#include "core/kernels_portable.h"
#include "core/nearest_rounding.h"
#include "core/quant_scale.h"

namespace sgl_rvv {
namespace {

struct Bf16 {
  using Bits = uint16_t;
  static constexpr Bits kInfinity = 0x7f80;
  static float value(Bits bits) { return bf16_to_float(bits); }
};

struct Fp16 {
  using Bits = uint16_t;
  static constexpr Bits kInfinity = 0x7c00;
  static float value(Bits bits) { return fp16_to_float(bits); }
};

struct Fp32 {
  using Bits = uint32_t;
  static constexpr Bits kInfinity = 0x7f800000U;
  static float value(Bits bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
};

// Adding 1.5 * 2^52 puts the last place of a double at 1. The product of two FP32 is exact in it.
int8_t code(float value, float factor) {
  constexpr double kShift = 0x1.8p52;
  const double shifted = static_cast<double>(value) * static_cast<double>(factor) + kShift;
  return static_cast<int8_t>(shifted - kShift);
}

template <class Format>
void quantise(const TokenQuant& call, int64_t row) {
  using Bits = typename Format::Bits;
  constexpr auto kMagnitude = static_cast<Bits>(static_cast<Bits>(-1) >> 1);
  const Bits* x = static_cast<const Bits*>(call.rows) + row * call.stride;
  int8_t* codes = call.codes + row * call.k;
  Bits largest = 0;
  for (int64_t i = 0; i < call.k; ++i) {
    largest = std::max(largest, static_cast<Bits>(x[i] & kMagnitude));
  }
  const QuantScale of = quant_scale(Format::value(largest));
  call.scales[row] = of.scale;
  if (largest >= Format::kInfinity) {
    special_codes(x, call.k, Format::kInfinity, largest > Format::kInfinity, codes);
    return;
  }
  for (int64_t i = 0; i < call.k; ++i) codes[i] = code(Format::value(x[i]), of.factor);
}

template <class Format>
void quantise_rows(const TokenQuant& call, int64_t row_begin, int64_t row_end) {
  const NearestRounding nearest;
  for (int64_t row = row_begin; row < row_end; ++row) quantise<Format>(call, row);
}

}  // namespace

void token_quant_bf16_portable(const TokenQuant& call, int64_t row_begin, int64_t row_end) {
  quantise_rows<Bf16>(call, row_begin, row_end);
}

void token_quant_fp16_portable(const TokenQuant& call, int64_t row_begin, int64_t row_end) {
  quantise_rows<Fp16>(call, row_begin, row_end);
}

void token_quant_fp32_portable(const TokenQuant& call, int64_t row_begin, int64_t row_end) {
  quantise_rows<Fp32>(call, row_begin, row_end);
}

}  // namespace sgl_rvv
