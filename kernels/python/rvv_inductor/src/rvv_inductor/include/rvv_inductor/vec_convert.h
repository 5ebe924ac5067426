// Conversions between vectors of different types: BF16 and FP16 to FP32 and back, integers to FP32
// and back.
#pragma once

#include "two_byte_floats.h"
#include "vec_members.h"

namespace at::vec::inline CPU_CAPABILITY {

// BF16 and FP16 share everything but the two functions that convert eight.
template <typename T>
struct RvvTwoByte;
template <>
struct RvvTwoByte<BFloat16> {
  static rvv_inductor::F32 widen(rvv_inductor::U32 x) { return rvv_inductor::from_bf16(x); }
  static rvv_inductor::U32 narrow(rvv_inductor::F32 x) { return rvv_inductor::to_bf16(x); }
};
template <>
struct RvvTwoByte<Half> {
  static rvv_inductor::F32 widen(rvv_inductor::U32 x) { return rvv_inductor::from_fp16(x); }
  static rvv_inductor::U32 narrow(rvv_inductor::F32 x) { return rvv_inductor::to_fp16(x); }
};

template <typename T>
inline VectorizedN<float, 2> rvv_widen_both(const VectorizedN<T, 1>& source) {
  const auto x = rvv_inductor::lanes(source[0]);
  return {
      rvv_inductor::vectorized<float>(RvvTwoByte<T>::widen(rvv_inductor::lower_as<uint32_t>(x))),
      rvv_inductor::vectorized<float>(RvvTwoByte<T>::widen(rvv_inductor::upper_as<uint32_t>(x)))};
}

template <typename T>
inline VectorizedN<float, 1> rvv_widen_first(const VectorizedN<T, 1>& source) {
  const auto x = rvv_inductor::lanes(source[0]);
  return rvv_inductor::vectorized<float>(RvvTwoByte<T>::widen(rvv_inductor::lower_as<uint32_t>(x)));
}

template <typename T>
inline VectorizedN<T, 1> rvv_narrow_both(const VectorizedN<float, 2>& source) {
  return rvv_inductor::vectorized<T>(
      rvv_inductor::joined_as<uint16_t>(RvvTwoByte<T>::narrow(rvv_inductor::lanes(source[0])),
                                        RvvTwoByte<T>::narrow(rvv_inductor::lanes(source[1]))));
}

template <typename T>
inline VectorizedN<T, 1> rvv_narrow_first(const VectorizedN<float, 1>& source) {
  return rvv_inductor::vectorized<T>(rvv_inductor::joined_as<uint16_t>(
      RvvTwoByte<T>::narrow(rvv_inductor::lanes(source[0])), rvv_inductor::U32{}));
}

#define RVV_INDUCTOR_CONVERSION(to, to_n, from, from_n, function)                        \
  template <>                                                                            \
  struct VecConvert<to, to_n, from, from_n, void> {                                      \
    static inline VectorizedN<to, to_n> apply(const VectorizedN<from, from_n>& source) { \
      return function(source);                                                           \
    }                                                                                    \
  };

RVV_INDUCTOR_CONVERSION(float, 2, BFloat16, 1, rvv_widen_both)
RVV_INDUCTOR_CONVERSION(float, 1, BFloat16, 1, rvv_widen_first)
RVV_INDUCTOR_CONVERSION(BFloat16, 1, float, 2, rvv_narrow_both<BFloat16>)
RVV_INDUCTOR_CONVERSION(BFloat16, 1, float, 1, rvv_narrow_first<BFloat16>)
RVV_INDUCTOR_CONVERSION(float, 2, Half, 1, rvv_widen_both)
RVV_INDUCTOR_CONVERSION(float, 1, Half, 1, rvv_widen_first)
RVV_INDUCTOR_CONVERSION(Half, 1, float, 2, rvv_narrow_both<Half>)
RVV_INDUCTOR_CONVERSION(Half, 1, float, 1, rvv_narrow_first<Half>)

// Eight lanes of `From` in one vector as two vectors of the twice as wide `To`, and back.
template <typename To, typename From>
inline VectorizedN<To, 2> rvv_widen_number(const VectorizedN<From, 1>& source) {
  const auto x = rvv_inductor::lanes(source[0]);
  return {rvv_inductor::vectorized<To>(rvv_inductor::lower_as<To>(x)),
          rvv_inductor::vectorized<To>(rvv_inductor::upper_as<To>(x))};
}

template <typename To, typename From>
inline VectorizedN<To, 1> rvv_narrow_number(const VectorizedN<From, 2>& source) {
  return rvv_inductor::vectorized<To>(
      rvv_inductor::joined_as<To>(rvv_inductor::lanes(source[0]), rvv_inductor::lanes(source[1])));
}

template <typename To, typename From>
inline VectorizedN<To, 1> rvv_convert_number(const VectorizedN<From, 1>& source) {
  return rvv_inductor::vectorized<To>(
      __builtin_convertvector(rvv_inductor::lanes(source[0]), rvv_inductor::Lanes<To>));
}

RVV_INDUCTOR_CONVERSION(float, 1, int32_t, 1, (rvv_convert_number<float, int32_t>))
RVV_INDUCTOR_CONVERSION(int32_t, 1, float, 1, (rvv_convert_number<int32_t, float>))
RVV_INDUCTOR_CONVERSION(int64_t, 2, int32_t, 1, (rvv_widen_number<int64_t, int32_t>))
RVV_INDUCTOR_CONVERSION(int32_t, 1, int64_t, 2, (rvv_narrow_number<int32_t, int64_t>))
RVV_INDUCTOR_CONVERSION(int64_t, 2, float, 1, (rvv_widen_number<int64_t, float>))
RVV_INDUCTOR_CONVERSION(float, 1, int64_t, 2, (rvv_narrow_number<float, int64_t>))
RVV_INDUCTOR_CONVERSION(double, 2, float, 1, (rvv_widen_number<double, float>))
RVV_INDUCTOR_CONVERSION(float, 1, double, 2, (rvv_narrow_number<float, double>))
#undef RVV_INDUCTOR_CONVERSION

}  // namespace at::vec::inline CPU_CAPABILITY
