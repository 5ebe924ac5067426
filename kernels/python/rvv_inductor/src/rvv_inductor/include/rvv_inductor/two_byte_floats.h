// BF16 and FP16 as their bits, eight at a time, to float32 and back. Without torch, and without
// Zvfh or Zvfbfmin.
#pragma once

#include "lanes.h"

namespace rvv_inductor {

// The lower or upper half of the lanes, converted to the twice as wide type `To`.
template <typename To, typename L>
[[gnu::always_inline]] inline Lanes<To> lower_as(L x) {
  if constexpr (sizeof(L) / sizeof(x[0]) == 8) {
    return __builtin_convertvector(__builtin_shufflevector(x, x, 0, 1, 2, 3), Lanes<To>);
  } else {
    return __builtin_convertvector(__builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7),
                                   Lanes<To>);
  }
}

template <typename To, typename L>
[[gnu::always_inline]] inline Lanes<To> upper_as(L x) {
  if constexpr (sizeof(L) / sizeof(x[0]) == 8) {
    return __builtin_convertvector(__builtin_shufflevector(x, x, 4, 5, 6, 7), Lanes<To>);
  } else {
    return __builtin_convertvector(__builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15),
                                   Lanes<To>);
  }
}

// Both together, converted to the half as wide type `To`.
template <typename To, typename L>
[[gnu::always_inline]] inline Lanes<To> joined_as(L lower, L upper) {
  const auto a = __builtin_convertvector(lower, HalfLanes<To>);
  const auto b = __builtin_convertvector(upper, HalfLanes<To>);
  if constexpr (sizeof(L) / sizeof(lower[0]) == 4) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
  } else {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  }
}

// In what follows `bits` are those of a two-byte float, zero-extended.

[[gnu::always_inline]] inline F32 from_bf16(U32 bits) {
  return bits_of<F32>(bits << 16);
}

// To nearest even; every NaN becomes 0x7fc0, as c10's do.
[[gnu::always_inline]] inline U32 to_bf16(F32 x) {
  const U32 bits = bits_of<U32>(x);
  const U32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return x == x ? rounded : splat(uint32_t{0x7fc0});
}

// Exponent and mantissa at float32's places are 2^112 too small; the product is exact, of
// subnormals too.
[[gnu::always_inline]] inline F32 from_fp16(U32 bits) {
  const U32 magnitude = (bits & 0x7fffu) << 13;
  const U32 finite = bits_of<U32>(bits_of<F32>(magnitude) * 0x1p112f);
  const U32 value = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite;
  return bits_of<F32>(value | ((bits & 0x8000u) << 16));
}

// To nearest even; every NaN becomes 0x7e00 with its sign, as c10's do.
[[gnu::always_inline]] inline U32 to_fp16(F32 x) {
  const U32 bits = bits_of<U32>(x);
  const U32 magnitude = bits & 0x7fffffffu;
  const U32 normal = (magnitude - 0x38000000u + 0x0fffu + ((magnitude >> 13) & 1u)) >> 13;
  // Beside 0.5 the last place of a sum is 2^-24, that of FP16's subnormals.
  const U32 subnormal = bits_of<U32>(bits_of<F32>(magnitude) + 0.5f) - 0x3f000000u;
  U32 value = magnitude < 0x38800000u ? subnormal : normal;
  value = magnitude >= 0x477ff000u ? splat(uint32_t{0x7c00}) : value;
  value = magnitude > 0x7f800000u ? splat(uint32_t{0x7e00}) : value;
  return value | ((bits >> 16) & 0x8000u);
}

}  // namespace rvv_inductor
