// FP32 lanes of RVV 1.0, and rows of BF16 and FP32 as such lanes. Only for files that are compiled
// with V. Groups are LMUL 2: 16 lanes at VLEN 256.
//
// A step of a row is two groups, of `vl` lanes each. Of BF16 the first holds the even elements and
// the second the odd ones: a step is read as 32-bit lanes, of which a shift makes the lower BF16 an
// FP32 and a mask the upper one. Of FP32 the first half of the step comes first.
//
// Rounding to BF16 by floating-point operations, since the X60's integer unit has half the width of
// its floating-point one. Let z be a number with exponent e, so that its last place is 2^(e-23).
// RN(65535 z) = RN(65536 z - z) rounds to a multiple of 2^(e-7), the last place of a BF16; 65536 z
// is such a multiple itself, so 65536 z - RN(65535 z) is z rounded to a BF16, and a tie goes to the
// even one, because 65536 z is an even multiple where z lies midway. (Where 65535 z falls below
// 2^(e+16), places are half as large; z is then within 2^-16 of the power of two below it, and goes
// there.) The difference is exact. So that nothing overflows, and so that what will be a subnormal
// BF16 is rounded where the hardware rounds subnormals, z is the number to be rounded times 2^-16
// (kScale), and the result is multiplied by 2^16. An infinity would be subtracted from itself: the
// minuend's z is held to what is finite.
#pragma once

#include <riscv_vector.h>

#include <cstddef>
#include <cstdint>

#include "core/all_lanes_rvv.h"
#include "core/bf16.h"
#include "core/steps.h"

#define SGL_RVV_LANES static inline __attribute__((always_inline))

namespace sgl_rvv {

struct RvvLanes {
  using Float = vfloat32m2_t;

  // As many lanes as there are, up to `wanted`.
  SGL_RVV_LANES size_t lanes(int64_t wanted) {
    return __riscv_vsetvl_e32m2(static_cast<size_t>(wanted));
  }

  SGL_RVV_LANES Float splat(float value, size_t vl) { return __riscv_vfmv_v_f_f32m2(value, vl); }
  SGL_RVV_LANES Float load_floats(const float* from, size_t vl) {
    return __riscv_vle32_v_f32m2(from, vl);
  }
  SGL_RVV_LANES void store_floats(float* to, Float a, size_t vl) {
    __riscv_vse32_v_f32m2(to, a, vl);
  }

  SGL_RVV_LANES Float add(Float a, Float b, size_t vl) { return __riscv_vfadd_vv_f32m2(a, b, vl); }
  SGL_RVV_LANES Float add(Float a, float b, size_t vl) { return __riscv_vfadd_vf_f32m2(a, b, vl); }
  SGL_RVV_LANES Float subtract(Float a, float b, size_t vl) {
    return __riscv_vfsub_vf_f32m2(a, b, vl);
  }
  SGL_RVV_LANES Float multiply(Float a, Float b, size_t vl) {
    return __riscv_vfmul_vv_f32m2(a, b, vl);
  }
  SGL_RVV_LANES Float multiply(Float a, float b, size_t vl) {
    return __riscv_vfmul_vf_f32m2(a, b, vl);
  }
  // a + b * c, rounded once.
  SGL_RVV_LANES Float multiply_add(Float a, Float b, Float c, size_t vl) {
    return __riscv_vfmacc_vv_f32m2(a, b, c, vl);
  }
  SGL_RVV_LANES Float multiply_add(Float a, float b, Float c, size_t vl) {
    return __riscv_vfmacc_vf_f32m2(a, b, c, vl);
  }
  // a - b * c, rounded once.
  SGL_RVV_LANES Float multiply_subtract(Float a, Float b, Float c, size_t vl) {
    return __riscv_vfnmsac_vv_f32m2(a, b, c, vl);
  }
  // a from -most to most; NaN becomes one of them.
  SGL_RVV_LANES Float held(Float a, float most, size_t vl) {
    return __riscv_vfmin_vf_f32m2(__riscv_vfmax_vf_f32m2(a, -most, vl), most, vl);
  }
  // max(a, 0), NaN where a is NaN or -inf.
  SGL_RVV_LANES Float positive(Float a, size_t vl) {
    return __riscv_vfsub_vv_f32m2(a, __riscv_vfmin_vf_f32m2(a, 0.0F, vl), vl);
  }
  SGL_RVV_LANES Float magnitude(Float a, size_t vl) { return __riscv_vfabs_v_f32m2(a, vl); }
  // Whether all lanes are: 0 times them is 0.
  SGL_RVV_LANES bool finite(Float a, size_t vl) {
    const vfloat32m1_t zero = __riscv_vfmv_s_f_f32m1(0.0F, 1);
    const vfloat32m1_t sum = __riscv_vfredusum_vs_f32m2_f32m1(multiply(a, 0.0F, vl), zero, vl);
    return __riscv_vfmv_f_s_f32m1_f32(sum) == 0.0F;
  }
  // The number whose exponent is the low bits of a.
  SGL_RVV_LANES Float power_of_two(Float a, size_t vl) {
    return __riscv_vreinterpret_v_u32m2_f32m2(
        __riscv_vsll_vx_u32m2_m(all_lanes(vl), __riscv_vreinterpret_v_f32m2_u32m2(a), 23, vl));
  }
  // 1 / a for normal a with a normal reciprocal: an estimate r of seven bits with error e = 1 - a
  // r, then r (1 + e + e^2), which is right to 2^-21.
  SGL_RVV_LANES Float reciprocal(Float a, size_t vl) {
    const Float r = __riscv_vfrec7_v_f32m2(a, vl);
    const Float e = __riscv_vfrsub_vf_f32m2(multiply(a, r, vl), 1.0F, vl);
    return __riscv_vfmadd_vv_f32m2(__riscv_vfmadd_vv_f32m2(e, e, e, vl), r, r, vl);
  }
};

// `Words`: rows are aligned to 4 bytes, and whole steps of them are read and written as 32-bit
// elements, without changing the width of elements to and fro.
template <bool Words>
struct RvvBf16 : RvvLanes {
  using Element = uint16_t;
  static constexpr float kScale = 0x1p-16F;  // what is stored has been multiplied by this
  static constexpr bool kEvenOdd = true;

  SGL_RVV_LANES Float scaled(Float value, size_t vl) { return multiply(value, kScale, vl); }

  SGL_RVV_LANES void load(const Element* from, WholeStep, Float& even, Float& odd, size_t vl) {
    if constexpr (Words) {
      split(__riscv_vle32_v_u32m2(reinterpret_cast<const uint32_t*>(from), vl), even, odd, vl);
    } else {
      split(__riscv_vreinterpret_v_u16m2_u32m2(__riscv_vle16_v_u16m2(from, 2 * vl)), even, odd, vl);
    }
  }
  SGL_RVV_LANES void load(const Element* from, PartStep step, Float& even, Float& odd, size_t vl) {
    const vuint16m2_t zeros = __riscv_vmv_v_x_u16m2(0, 2 * vl);
    split(__riscv_vreinterpret_v_u16m2_u32m2(__riscv_vle16_v_u16m2_tu(zeros, from, step.count)),
          even, odd, vl);
  }

  template <class Step>
  SGL_RVV_LANES void store(Element* to, Step step, Float even, Float odd, size_t vl) {
    write(to, step, rounded(even, vl), rounded(odd, vl), vl);
  }

  // The same as long as no result is as large as 2^112, infinite or NaN: the product of the two
  // results is added to `witness`, which is not finite() where a step was not stored rightly.
  template <class Step>
  SGL_RVV_LANES void store_quickly(Element* to, Step step, Float even, Float odd, Float& witness,
                                   size_t vl) {
    const Float low = rounded_quickly(even, 0x1p32F, vl);
    const Float high = rounded_quickly(odd, 0x1p32F, vl);
    witness = multiply_add(witness, low, high, vl);
    write(to, step, low, high, vl);
  }

  // The same for the sums of two BF16, which have not been scaled: one below 2^-126 is a BF16.
  template <class Step>
  SGL_RVV_LANES void store_sum_quickly(Element* to, Step step, Float even, Float odd,
                                       Float& witness, size_t vl) {
    const Float low = rounded_quickly(even, 0x1p16F, vl);
    const Float high = rounded_quickly(odd, 0x1p16F, vl);
    witness = multiply_add(witness, low, high, vl);
    write(to, step, low, high, vl);
  }

  // Pairs of neighbours lie in these lanes anyway.
  template <class Step>
  SGL_RVV_LANES void load_pairs(const Element* from, Step step, Float& a, Float& b, size_t vl) {
    load(from, step, a, b, vl);
  }
  template <class Step>
  SGL_RVV_LANES void store_pairs(Element* to, Step step, Float a, Float b, size_t vl) {
    store(to, step, a, b, vl);
  }
  template <class Step>
  SGL_RVV_LANES void store_pairs_quickly(Element* to, Step step, Float a, Float b, Float& witness,
                                         size_t vl) {
    store_quickly(to, step, a, b, witness, vl);
  }

  SGL_RVV_LANES float one(Element value) { return bf16_to_float(value); }

  // What a stored value is read as, times 2^16.
  SGL_RVV_LANES Float rounded(Float scaled, size_t vl) {
    constexpr float kLargest = 0x1.fffffep127F * kScale;
    const Float places = multiply(held(scaled, kLargest, vl), 65535.0F, vl);
    return __riscv_vfmul_vf_f32m2(__riscv_vfmsac_vf_f32m2(places, 65536.0F, scaled, vl), 65536.0F,
                                  vl);
  }

 private:
  SGL_RVV_LANES void split(vuint32m2_t bits, Float& even, Float& odd, size_t vl) {
    const vbool16_t all = all_lanes(vl);
    even = __riscv_vreinterpret_v_u32m2_f32m2(__riscv_vsll_vx_u32m2_m(all, bits, 16, vl));
    odd = __riscv_vreinterpret_v_u32m2_f32m2(__riscv_vand_vx_u32m2_m(all, bits, 0xffff0000U, vl));
  }

  // z rounded, times `factor` / 65536, in two steps of what is above.
  SGL_RVV_LANES Float rounded_quickly(Float z, float factor, size_t vl) {
    const Float places = multiply(z, factor - factor / 65536.0F, vl);
    return __riscv_vfmsac_vf_f32m2(places, factor, z, vl);
  }

  SGL_RVV_LANES void write(Element* to, WholeStep, Float even, Float odd, size_t vl) {
    if constexpr (Words) {
      __riscv_vse32_v_u32m2(reinterpret_cast<uint32_t*>(to), join(even, odd, vl), vl);
    } else {
      write(to, PartStep{2 * vl}, even, odd, vl);
    }
  }
  SGL_RVV_LANES void write(Element* to, PartStep step, Float even, Float odd, size_t vl) {
    __riscv_vse16_v_u16m2(to, __riscv_vreinterpret_v_u32m2_u16m2(join(even, odd, vl)), step.count);
  }

  // Two rounded values in a lane.
  SGL_RVV_LANES vuint32m2_t join(Float even, Float odd, size_t vl) {
    const vbool16_t all = all_lanes(vl);
    const vuint32m2_t low =
        __riscv_vsrl_vx_u32m2_m(all, __riscv_vreinterpret_v_f32m2_u32m2(even), 16, vl);
    return __riscv_vor_vv_u32m2_m(all, __riscv_vreinterpret_v_f32m2_u32m2(odd), low, vl);
  }
};

// What RvvBf16 has beside load() and store(), where store() itself is quick and nothing is scaled.
template <class Format>
class StoresQuickly {
  friend Format;
  StoresQuickly() = default;

 public:
  template <class Float>
  SGL_RVV_LANES Float scaled(Float value, size_t) {
    return value;
  }
  template <class Element, class Step, class Float>
  SGL_RVV_LANES void store_quickly(Element* to, Step step, Float a, Float b, Float&, size_t vl) {
    Format::store(to, step, a, b, vl);
  }
  template <class Element, class Step, class Float>
  SGL_RVV_LANES void store_sum_quickly(Element* to, Step step, Float a, Float b, Float&,
                                       size_t vl) {
    Format::store(to, step, a, b, vl);
  }
  template <class Element, class Step, class Float>
  SGL_RVV_LANES void store_pairs_quickly(Element* to, Step step, Float a, Float b, Float&,
                                         size_t vl) {
    Format::store_pairs(to, step, a, b, vl);
  }
  template <class Element>
  SGL_RVV_LANES float one(Element value) {
    return static_cast<float>(value);
  }
};

// The elements of a step that are in its second half.
SGL_RVV_LANES size_t rest_of(PartStep step) {
  return step.count > kStepLanes ? step.count - kStepLanes : 0;
}

// The lanes that a step of pairs fills.
SGL_RVV_LANES size_t lanes_of_pairs(WholeStep, size_t vl) {
  return vl;
}
SGL_RVV_LANES size_t lanes_of_pairs(PartStep step, size_t) {
  return step.count / 2;
}

struct RvvFp32 : RvvLanes, StoresQuickly<RvvFp32> {
  using Element = float;
  static constexpr float kScale = 1.0F;
  static constexpr bool kEvenOdd = false;

  SGL_RVV_LANES void load(const Element* from, WholeStep, Float& first, Float& second, size_t vl) {
    first = load_floats(from, vl);
    second = load_floats(from + kStepLanes, vl);
  }
  SGL_RVV_LANES void load(const Element* from, PartStep step, Float& first, Float& second,
                          size_t vl) {
    const size_t count = step.count < vl ? step.count : vl;
    first = __riscv_vle32_v_f32m2_tu(splat(0.0F, vl), from, count);
    second = __riscv_vle32_v_f32m2_tu(splat(0.0F, vl), from + kStepLanes, rest_of(step));
  }

  SGL_RVV_LANES void store(Element* to, WholeStep, Float first, Float second, size_t vl) {
    store_floats(to, first, vl);
    store_floats(to + kStepLanes, second, vl);
  }
  SGL_RVV_LANES void store(Element* to, PartStep step, Float first, Float second, size_t vl) {
    const size_t count = step.count < vl ? step.count : vl;
    store_floats(to, first, count);
    store_floats(to + kStepLanes, second, rest_of(step));
  }

  template <class Step>
  SGL_RVV_LANES void load_pairs(const Element* from, Step step, Float& a, Float& b, size_t vl) {
    const vfloat32m2x2_t both = __riscv_vlseg2e32_v_f32m2x2(from, lanes_of_pairs(step, vl));
    a = __riscv_vget_v_f32m2x2_f32m2(both, 0);
    b = __riscv_vget_v_f32m2x2_f32m2(both, 1);
  }
  template <class Step>
  SGL_RVV_LANES void store_pairs(Element* to, Step step, Float a, Float b, size_t vl) {
    __riscv_vsseg2e32_v_f32m2x2(to, __riscv_vcreate_v_f32m2x2(a, b), lanes_of_pairs(step, vl));
  }
};

}  // namespace sgl_rvv
