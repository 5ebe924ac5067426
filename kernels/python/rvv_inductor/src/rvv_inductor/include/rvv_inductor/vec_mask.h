// VecMask over floats, which is what generated code compares: from and to bool, to integers, masked
// loads.
#pragma once

#include "two_byte_floats.h"
#include "vec_members.h"

namespace rvv_inductor {

using Bytes8 = uint8_t __attribute__((vector_size(8)));
using SignedBytes8 = int8_t __attribute__((vector_size(8)));

// All ones where a bool of eight is true. Only `count` of them are read; the others are false.
[[gnu::always_inline]] inline I32 mask_of_bools(const bool* from, int count) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, from, static_cast<size_t>(count < 8 ? count : 8));
  // To clang the outcome has elements of type char, which have no sign here.
  return __builtin_convertvector((SignedBytes8)(__builtin_bit_cast(Bytes8, bytes) != 0), I32);
}

// 1 where a mask holds.
[[gnu::always_inline]] inline uint64_t bools_of_mask(I32 mask) {
  return __builtin_bit_cast(uint64_t, __builtin_convertvector(mask & 1, Bytes8));
}

// `count` elements of 1, 2, 4 or 8 bytes, up to 8, of which only those are read whose mask holds;
// the others become 0.
template <typename T>
[[gnu::always_inline]] inline void load_masked(T* to, const T* from, I32 mask) {
#if defined(__riscv_vector)
  alignas(kBytes) int32_t chosen[kLanes<int32_t>];
  store<int32_t>(chosen, mask);
  const vbool16_t holds = __riscv_vmsne_vx_i32m2_b16(__riscv_vle32_v_i32m2(chosen, 8), 0, 8);
  if constexpr (sizeof(T) == 4) {
    const auto got = __riscv_vle32_v_u32m2_mu(holds, __riscv_vmv_v_x_u32m2(0, 8),
                                              reinterpret_cast<const uint32_t*>(from), 8);
    __riscv_vse32_v_u32m2(reinterpret_cast<uint32_t*>(to), got, 8);
  } else if constexpr (sizeof(T) == 2) {
    const auto got = __riscv_vle16_v_u16m1_mu(holds, __riscv_vmv_v_x_u16m1(0, 8),
                                              reinterpret_cast<const uint16_t*>(from), 8);
    __riscv_vse16_v_u16m1(reinterpret_cast<uint16_t*>(to), got, 8);
  } else if constexpr (sizeof(T) == 1) {
    const auto got = __riscv_vle8_v_u8mf2_mu(holds, __riscv_vmv_v_x_u8mf2(0, 8),
                                             reinterpret_cast<const uint8_t*>(from), 8);
    __riscv_vse8_v_u8mf2(reinterpret_cast<uint8_t*>(to), got, 8);
  } else {
    static_assert(sizeof(T) == 8);
    const auto got = __riscv_vle64_v_u64m4_mu(holds, __riscv_vmv_v_x_u64m4(0, 8),
                                              reinterpret_cast<const uint64_t*>(from), 8);
    __riscv_vse64_v_u64m4(reinterpret_cast<uint64_t*>(to), got, 8);
  }
#else
  for (int i = 0; i < 8; ++i) to[i] = mask[i] ? from[i] : T{};
#endif
}

}  // namespace rvv_inductor

namespace at::vec::inline CPU_CAPABILITY {

[[gnu::always_inline]] inline rvv_inductor::I32 rvv_mask(const Vectorized<float>& mask) {
  return rvv_inductor::lanes_as<rvv_inductor::I32>(mask);
}

#define RVV_INDUCTOR_FROM_BOOL(U)                                                           \
  template <>                                                                               \
  template <>                                                                               \
  inline VecMask<float, 1> VecMask<float, 1>::from<U>(U * from, int count) {                \
    return rvv_inductor::vectorized<float>(rvv_inductor::mask_of_bools(from, count));       \
  }                                                                                         \
  template <>                                                                               \
  template <>                                                                               \
  inline VecMask<float, 1> VecMask<float, 1>::from<U>(U * from) {                           \
    return rvv_inductor::vectorized<float>(rvv_inductor::mask_of_bools(from, 8));           \
  }                                                                                         \
  template <>                                                                               \
  template <>                                                                               \
  inline VecMask<float, 2> VecMask<float, 2>::from<U>(U * from, int count) {                \
    const auto upper =                                                                      \
        count > 8 ? rvv_inductor::mask_of_bools(from + 8, count - 8) : rvv_inductor::I32{}; \
    return VectorizedN<float, 2>(                                                           \
        rvv_inductor::vectorized<float>(rvv_inductor::mask_of_bools(from, count)),          \
        rvv_inductor::vectorized<float>(upper));                                            \
  }                                                                                         \
  template <>                                                                               \
  template <>                                                                               \
  inline VecMask<float, 2> VecMask<float, 2>::from<U>(U * from) {                           \
    return VecMask<float, 2>::from<U>(from, 16);                                            \
  }

RVV_INDUCTOR_FROM_BOOL(bool)
RVV_INDUCTOR_FROM_BOOL(const bool)
#undef RVV_INDUCTOR_FROM_BOOL

// To bool, of which 32 are one vector: the first ones are filled.
template <int N>
struct VecMaskTo<bool, 1, float, N, std::enable_if_t<N == 1 || N == 2>> {
  static inline VecMask<bool, 1> apply(const VecMask<float, N>& mask) {
    rvv_inductor::Lanes<uint64_t> bytes{};
#pragma GCC unroll 2
    for (int i = 0; i < N; ++i) bytes[i] = rvv_inductor::bools_of_mask(rvv_mask(mask[i]));
    return VectorizedN<bool, 1>(rvv_inductor::vectorized<bool>(bytes));
  }
};

template <>
struct VecMaskCast<int32_t, 1, float, 1, void> {
  static inline VecMask<int32_t, 1> apply(const VecMask<float, 1>& mask) {
    return rvv_inductor::vectorized<int32_t>(rvv_mask(mask[0]));
  }
};

template <>
struct VecMaskCast<float, 1, int32_t, 1, void> {
  static inline VecMask<float, 1> apply(const VecMask<int32_t, 1>& mask) {
    return rvv_inductor::vectorized<float>(rvv_inductor::lanes(mask[0]));
  }
};

template <>
struct VecMaskCast<int64_t, 2, float, 1, void> {
  static inline VecMask<int64_t, 2> apply(const VecMask<float, 1>& mask) {
    const auto x = rvv_mask(mask[0]);
    return VectorizedN<int64_t, 2>(
        rvv_inductor::vectorized<int64_t>(rvv_inductor::lower_as<int64_t>(x)),
        rvv_inductor::vectorized<int64_t>(rvv_inductor::upper_as<int64_t>(x)));
  }
};

template <>
struct VecMaskCast<float, 1, int64_t, 2, void> {
  static inline VecMask<float, 1> apply(const VecMask<int64_t, 2>& mask) {
    return rvv_inductor::vectorized<float>(rvv_inductor::joined_as<int32_t>(
        rvv_inductor::lanes(mask[0]), rvv_inductor::lanes(mask[1])));
  }
};

template <int N>
struct VecMaskCheck<float, N> {
  static inline bool all_zero(const VectorizedN<float, N>& mask) { return !any(mask, 0); }
  static inline bool all_masked(const VectorizedN<float, N>& mask) { return !any(mask, -1); }
  static inline bool is_masked(const VectorizedN<float, N>& mask, int i) {
    constexpr int n = Vectorized<float>::size();
    return rvv_mask(mask[i / n])[i % n] != 0;
  }

 private:
  // Whether a bit differs from those of `all`.
  static inline bool any(const VectorizedN<float, N>& mask, int32_t all) {
    rvv_inductor::I32 found{};
    for (int i = 0; i < N; ++i) found |= rvv_mask(mask[i]) ^ all;
    const auto words = rvv_inductor::bits_of<rvv_inductor::I64>(found);
    return (words[0] | words[1] | words[2] | words[3]) != 0;
  }
};

template <typename T, int N, int M>
struct VecMaskLoad<
    T, N, float, M,
    std::enable_if_t<(M == 1 || M == 2) && !std::is_same_v<T, bool> &&
                     (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8)>> {
  static inline VectorizedN<T, N> apply(const T* from, const VecMask<float, M>& mask) {
    static_assert(VectorizedN<T, N>::size() >= VecMask<float, M>::size());
    __at_align__ T chosen[VecMask<float, M>::size()];
    for (int i = 0; i < M; ++i)
      rvv_inductor::load_masked(chosen + 8 * i, from + 8 * i, rvv_mask(mask[i]));
    return VectorizedN<T, N>::loadu(chosen, VecMask<float, M>::size());
  }
};

}  // namespace at::vec::inline CPU_CAPABILITY
