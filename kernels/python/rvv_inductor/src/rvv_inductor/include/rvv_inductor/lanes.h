// 32 bytes of numbers as one value: the vectors that VecRVV computes with. Without torch; also for
// machines without RVV.
//
// GNU vectors of a fixed 32 bytes, which clang and GCC turn into RVV instructions for any VLEN of
// at least 128 (LMUL 2, vl set to the number of lanes), so that one object runs on every such
// machine. Values live in registers; no intrinsic moves them through memory, except where only some
// lanes are loaded or stored.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__riscv_vector)
#include <riscv_vector.h>
#if __riscv_v_min_vlen != 128
#error \
    "rvv_inductor: compile with -march=rv64gcv and without zvl*b: the code is for every VLEN from 128 on"
#endif
#endif

namespace rvv_inductor {

inline constexpr int kBytes = 32;

// T is an arithmetic type. Aligned to 32 bytes, as at::vec::Vectorized.
template <typename T>
struct LanesOf {
  typedef T type __attribute__((vector_size(kBytes)));
  // The same in memory: aligned as a T, and allowed to alias.
  typedef T memory __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  // And where an object of 32 bytes, so aligned, is looked at as lanes.
  typedef T aliased __attribute__((vector_size(kBytes), aligned(kBytes), may_alias));
};
template <typename T>
using Lanes = typename LanesOf<T>::type;

// Half of one, for conversions between types of different sizes. Never an argument or a result:
// calling conventions turn 16 bytes into an integer, and compilers do not find back.
template <typename T>
struct HalfLanesOf {
  typedef T type __attribute__((vector_size(kBytes / 2)));
};
template <typename T>
using HalfLanes = typename HalfLanesOf<T>::type;

using F32 = Lanes<float>;
using I32 = Lanes<int32_t>;
using U32 = Lanes<uint32_t>;
using U16 = Lanes<uint16_t>;
using I64 = Lanes<int64_t>;

template <typename T>
inline constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));

template <typename To, typename From>
[[gnu::always_inline]] inline To bits_of(From value) {
  static_assert(sizeof(To) == sizeof(From));
  return (To)value;  // Between GNU vectors of one size a cast keeps the bits.
}

// Bit by bit, of NaN too: masks are NaN as floats.
template <typename T>
[[gnu::always_inline]] inline Lanes<T> splat(T v) {
  if constexpr (kLanes<T> == 4) {
    return Lanes<T>{v, v, v, v};
  } else if constexpr (kLanes<T> == 8) {
    return Lanes<T>{v, v, v, v, v, v, v, v};
  } else {
    static_assert(kLanes<T> == 16);
    return Lanes<T>{v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v};
  }
}

template <typename T>
[[gnu::always_inline]] inline Lanes<T> load(const void* from) {
  return *static_cast<const typename LanesOf<T>::memory*>(from);
}

template <typename T>
[[gnu::always_inline]] inline void store(void* to, Lanes<T> value) {
  *static_cast<typename LanesOf<T>::memory*>(to) = value;
}

// The first `bytes` bytes of 32; the others are zero in `to` after load_bytes, and untouched after
// store_bytes.
[[gnu::always_inline]] inline void load_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes >= kBytes) {
    std::memcpy(to, from, kBytes);
    return;
  }
#if defined(__riscv_vector)
  const vuint8m2_t none = __riscv_vmv_v_x_u8m2(0, kBytes);
  const auto* source = static_cast<const uint8_t*>(from);
  __riscv_vse8_v_u8m2(static_cast<uint8_t*>(to), __riscv_vle8_v_u8m2_tu(none, source, bytes),
                      kBytes);
#else
  std::memset(to, 0, kBytes);
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

[[gnu::always_inline]] inline void store_bytes(void* to, const void* from, int64_t bytes) {
  if (bytes >= kBytes) {
    std::memcpy(to, from, kBytes);
    return;
  }
#if defined(__riscv_vector)
  __riscv_vse8_v_u8m2(static_cast<uint8_t*>(to),
                      __riscv_vle8_v_u8m2(static_cast<const uint8_t*>(from), bytes), bytes);
#else
  std::memcpy(to, from, static_cast<size_t>(bytes));
#endif
}

// a * b + c, rounded once.
[[gnu::always_inline]] inline F32 fma(F32 a, F32 b, F32 c) {
#if defined(__clang__)
  return __builtin_elementwise_fma(a, b, c);
#elif defined(__riscv_vector)
  // GCC has no such builtin for vectors, and does not vectorise calls of fmaf in straight code.
  asm("vsetivli zero,8,e32,m2,ta,ma\n\tvfmadd.vv %0,%1,%2"
      : "+vr"(a)
      : "vr"(b), "vr"(c)
      : "vl", "vtype");
  return a;
#else
  F32 result;
  for (int i = 0; i < kLanes<float>; ++i) result[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return result;
#endif
}

// Correctly rounded; NaN below zero, and -0 of -0.
[[gnu::always_inline]] inline F32 sqrt(F32 x) {
#if defined(__clang__)
  return __builtin_elementwise_sqrt(x);
#elif defined(__riscv_vector)
  asm("vsetivli zero,8,e32,m2,ta,ma\n\tvfsqrt.v %0,%0" : "+vr"(x) : : "vl", "vtype");
  return x;
#else
  F32 result;
  for (int i = 0; i < kLanes<float>; ++i) result[i] = __builtin_sqrtf(x[i]);
  return result;
#endif
}

// The same, with a number that stays in a scalar register.
[[gnu::always_inline]] inline F32 fma(float a, F32 b, F32 c) {
#if !defined(__clang__) && defined(__riscv_vector)
  asm("vsetivli zero,8,e32,m2,ta,ma\n\tvfmacc.vf %0,%1,%2"
      : "+vr"(c)
      : "f"(a), "vr"(b)
      : "vl", "vtype");
  return c;
#else
  return fma(splat(a), b, c);
#endif
}

[[gnu::always_inline]] inline F32 abs(F32 x) {
  return bits_of<F32>(bits_of<U32>(x) & 0x7fffffffu);
}

[[gnu::always_inline]] inline F32 negate(F32 x) {
  return bits_of<F32>(bits_of<U32>(x) ^ 0x80000000u);
}

[[gnu::always_inline]] inline F32 copysign(F32 magnitude, F32 sign) {
  return bits_of<F32>((bits_of<U32>(magnitude) & 0x7fffffffu) | (bits_of<U32>(sign) & 0x80000000u));
}

}  // namespace rvv_inductor
