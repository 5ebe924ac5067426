// Members of Vectorized<T>: loads and stores, masks, comparisons; for float also the functions of
// elementary.h.
#pragma once

#include "vec_lanes.h"

namespace at::vec::inline CPU_CAPABILITY {

// A specialisation cannot be a template: one line for each type, each of which is removed again
// below.

#define RVV_INDUCTOR_MEMORY(T)                                                                   \
  template <>                                                                                    \
  inline Vectorized<T> Vectorized<T>::loadu(const void* from) {                                  \
    return rvv_inductor::vectorized<T>(rvv_inductor::load<rvv_inductor::LaneOf<T>::type>(from)); \
  }                                                                                              \
  template <>                                                                                    \
  inline Vectorized<T> Vectorized<T>::loadu(const void* from, int64_t count) {                   \
    if (count >= size()) return loadu(from);                                                     \
    Vectorized<T> result;                                                                        \
    rvv_inductor::load_bytes(&result, from, count * static_cast<int64_t>(sizeof(T)));            \
    return result;                                                                               \
  }                                                                                              \
  template <>                                                                                    \
  inline void Vectorized<T>::store(void* to, int count) const {                                  \
    if (count >= size()) {                                                                       \
      rvv_inductor::store<rvv_inductor::LaneOf<T>::type>(to, rvv_inductor::lanes(*this));        \
    } else {                                                                                     \
      rvv_inductor::store_bytes(to, this, count * static_cast<int64_t>(sizeof(T)));              \
    }                                                                                            \
  }

RVV_INDUCTOR_MEMORY(float)
RVV_INDUCTOR_MEMORY(double)
RVV_INDUCTOR_MEMORY(int64_t)
RVV_INDUCTOR_MEMORY(int32_t)
RVV_INDUCTOR_MEMORY(int16_t)
RVV_INDUCTOR_MEMORY(int8_t)
RVV_INDUCTOR_MEMORY(uint8_t)
RVV_INDUCTOR_MEMORY(BFloat16)
RVV_INDUCTOR_MEMORY(Half)
#undef RVV_INDUCTOR_MEMORY

// The lowest bit of a mask's element chooses, as in the generic form.
#define RVV_INDUCTOR_CHOICE(T)                                                                    \
  template <>                                                                                     \
  inline Vectorized<T> Vectorized<T>::blendv(const Vectorized<T>& a, const Vectorized<T>& b,      \
                                             const Vectorized<T>& mask) {                         \
    const auto chosen =                                                                           \
        (rvv_inductor::bits_of<rvv_inductor::MaskFor<T>>(rvv_inductor::lanes(mask)) & 1) != 0;    \
    return rvv_inductor::vectorized<T>(chosen ? rvv_inductor::lanes(b) : rvv_inductor::lanes(a)); \
  }                                                                                               \
  template <>                                                                                     \
  inline Vectorized<T> Vectorized<T>::set(const Vectorized<T>& a, const Vectorized<T>& b,         \
                                          int64_t count) {                                        \
    if (count >= size()) return b;                                                                \
    const auto chosen = rvv_inductor::indices<T>() < static_cast<int_same_size_t<T>>(count);      \
    return rvv_inductor::vectorized<T>(chosen ? rvv_inductor::lanes(b) : rvv_inductor::lanes(a)); \
  }

RVV_INDUCTOR_CHOICE(float)
RVV_INDUCTOR_CHOICE(double)
RVV_INDUCTOR_CHOICE(int64_t)
RVV_INDUCTOR_CHOICE(int32_t)
RVV_INDUCTOR_CHOICE(int16_t)
RVV_INDUCTOR_CHOICE(int8_t)
RVV_INDUCTOR_CHOICE(uint8_t)
RVV_INDUCTOR_CHOICE(BFloat16)
RVV_INDUCTOR_CHOICE(Half)
#undef RVV_INDUCTOR_CHOICE

#define RVV_INDUCTOR_COMPARISON(T, op, name)                                                      \
  template <>                                                                                     \
  inline Vectorized<T> Vectorized<T>::operator op(const Vectorized<T>& other) const {             \
    return rvv_inductor::vectorized<T>(rvv_inductor::lanes(*this) op rvv_inductor::lanes(other)); \
  }                                                                                               \
  template <>                                                                                     \
  inline Vectorized<T> Vectorized<T>::name(const Vectorized<T>& other) const {                    \
    const auto holds = rvv_inductor::lanes(*this) op rvv_inductor::lanes(other);                  \
    return rvv_inductor::vectorized<T>(holds ? rvv_inductor::splat(static_cast<T>(1))             \
                                             : rvv_inductor::splat(static_cast<T>(0)));           \
  }
#define RVV_INDUCTOR_NUMBER(T)                                                                \
  template <>                                                                                 \
  inline Vectorized<T>::Vectorized(T value) {                                                 \
    *reinterpret_cast<rvv_inductor::LanesOf<T>::aliased*>(this) = rvv_inductor::splat(value); \
  }                                                                                           \
  RVV_INDUCTOR_COMPARISON(T, ==, eq)                                                          \
  RVV_INDUCTOR_COMPARISON(T, !=, ne)                                                          \
  RVV_INDUCTOR_COMPARISON(T, >, gt)                                                           \
  RVV_INDUCTOR_COMPARISON(T, >=, ge)                                                          \
  RVV_INDUCTOR_COMPARISON(T, <, lt)                                                           \
  RVV_INDUCTOR_COMPARISON(T, <=, le)

RVV_INDUCTOR_NUMBER(float)
RVV_INDUCTOR_NUMBER(double)
RVV_INDUCTOR_NUMBER(int32_t)
RVV_INDUCTOR_NUMBER(int64_t)
#undef RVV_INDUCTOR_NUMBER
#undef RVV_INDUCTOR_COMPARISON

#define RVV_INDUCTOR_FUNCTION(name, function)                                                   \
  template <>                                                                                   \
  inline Vectorized<float> Vectorized<float>::name() const {                                    \
    return rvv_inductor::vectorized<float>(rvv_inductor::function(rvv_inductor::lanes(*this))); \
  }

RVV_INDUCTOR_FUNCTION(exp, exp)
RVV_INDUCTOR_FUNCTION(exp_u20, exp_fast)
RVV_INDUCTOR_FUNCTION(fexp_u20, exp_fast)
RVV_INDUCTOR_FUNCTION(log, log)
RVV_INDUCTOR_FUNCTION(tanh, tanh)
RVV_INDUCTOR_FUNCTION(erf, erf)
RVV_INDUCTOR_FUNCTION(sqrt, sqrt)
RVV_INDUCTOR_FUNCTION(rsqrt, reciprocal_sqrt)
RVV_INDUCTOR_FUNCTION(round, round_even)
RVV_INDUCTOR_FUNCTION(floor, floor)
RVV_INDUCTOR_FUNCTION(ceil, ceil)
RVV_INDUCTOR_FUNCTION(trunc, trunc)
RVV_INDUCTOR_FUNCTION(neg, negate)
#undef RVV_INDUCTOR_FUNCTION

template <>
inline Vectorized<float> Vectorized<float>::reciprocal() const {
  return rvv_inductor::vectorized<float>(1.0f / rvv_inductor::lanes(*this));
}

template <>
inline Vectorized<float> Vectorized<float>::isnan() const {
  return rvv_inductor::vectorized<float>(rvv_inductor::lanes(*this) != rvv_inductor::lanes(*this));
}

template <>
template <>
inline Vectorized<float> Vectorized<float>::abs<float, 0>() const {
  return rvv_inductor::vectorized<float>(rvv_inductor::abs(rvv_inductor::lanes(*this)));
}

template <>
template <>
inline Vectorized<float> Vectorized<float>::copysign<float, 0>(
    const Vectorized<float>& sign) const {
  return rvv_inductor::vectorized<float>(
      rvv_inductor::copysign(rvv_inductor::lanes(*this), rvv_inductor::lanes(sign)));
}

// Of two-byte floats the sign is a bit too.
template <>
inline Vectorized<BFloat16> Vectorized<BFloat16>::neg() const {
  return rvv_inductor::vectorized<BFloat16>(rvv_inductor::lanes(*this) ^ uint16_t{0x8000});
}
template <>
inline Vectorized<Half> Vectorized<Half>::neg() const {
  return rvv_inductor::vectorized<Half>(rvv_inductor::lanes(*this) ^ uint16_t{0x8000});
}

}  // namespace at::vec::inline CPU_CAPABILITY
