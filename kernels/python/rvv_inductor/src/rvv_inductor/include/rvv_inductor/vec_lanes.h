// Between at::vec's Vectorized<T> and the lanes that compute.
#pragma once

#include <ATen/cpu/vec/vec_base.h>

#include <concepts>

#include "elementary.h"

#ifndef CPU_CAPABILITY_RVV_OOT
#error "rvv_inductor: these headers are for code that TorchInductor generates for VecRVV"
#endif

namespace rvv_inductor {

// What a T is computed as: numbers as themselves, two-byte floats as their bits, bool as bytes.
template <typename T>
struct LaneOf {
  using type = T;
};
template <>
struct LaneOf<c10::BFloat16> {
  using type = uint16_t;
};
template <>
struct LaneOf<c10::Half> {
  using type = uint16_t;
};
template <>
struct LaneOf<bool> {
  using type = uint8_t;
};
template <typename T>
using LanesFor = Lanes<typename LaneOf<T>::type>;

template <typename T>
concept Number = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, int32_t> ||
                 std::same_as<T, int64_t>;

template <typename T>
[[gnu::always_inline]] inline LanesFor<T> lanes(const at::vec::Vectorized<T>& value) {
  static_assert(sizeof(value) == kBytes && std::is_trivially_copyable_v<at::vec::Vectorized<T>>);
  return *reinterpret_cast<const typename LanesOf<typename LaneOf<T>::type>::aliased*>(&value);
}

// Any lanes may be the bits of any Vectorized.
template <typename T, typename L>
[[gnu::always_inline]] inline at::vec::Vectorized<T> vectorized(L value) {
  at::vec::Vectorized<T> result;
  *reinterpret_cast<typename LanesOf<std::remove_cvref_t<decltype(value[0])>>::aliased*>(&result) =
      value;
  return result;
}

// Its bits as other lanes than those of its type.
template <typename L, typename T>
[[gnu::always_inline]] inline L lanes_as(const at::vec::Vectorized<T>& value) {
  return *reinterpret_cast<const typename LanesOf<std::remove_cvref_t<decltype(L{}[0])>>::aliased*>(
      &value);
}

// Lanes of signed integers as wide as a T: what comparisons of T give.
template <typename T>
using MaskFor = Lanes<at::vec::int_same_size_t<T>>;

// 0, 1, 2, ...
template <typename T>
[[gnu::always_inline]] inline MaskFor<T> indices() {
  MaskFor<T> result{};
#pragma GCC unroll 32
  for (int i = 0; i < kLanes<T>; ++i) result[i] = static_cast<at::vec::int_same_size_t<T>>(i);
  return result;
}

}  // namespace rvv_inductor
