// Rows of FP16 as FP32 lanes (lanes_rvv.h), for files that are compiled with Zvfh. The first half
// of a step comes first.
#pragma once

#include "core/lanes_rvv.h"

namespace sgl_rvv {

struct ZvfhFp16 : RvvLanes, StoresQuickly<ZvfhFp16> {
  using Element = _Float16;
  static constexpr float kScale = 1.0F;
  static constexpr bool kEvenOdd = false;

  SGL_RVV_LANES void load(const Element* from, WholeStep, Float& first, Float& second, size_t vl) {
    first = widened(__riscv_vle16_v_f16m1(from, vl), vl);
    second = widened(__riscv_vle16_v_f16m1(from + kStepLanes, vl), vl);
  }
  SGL_RVV_LANES void load(const Element* from, PartStep step, Float& first, Float& second,
                          size_t vl) {
    const vfloat16m1_t zeros = __riscv_vfmv_v_f_f16m1(Element{0}, vl);
    const size_t count = step.count < vl ? step.count : vl;
    first = widened(__riscv_vle16_v_f16m1_tu(zeros, from, count), vl);
    second = widened(__riscv_vle16_v_f16m1_tu(zeros, from + kStepLanes, rest_of(step)), vl);
  }

  SGL_RVV_LANES void store(Element* to, WholeStep, Float first, Float second, size_t vl) {
    __riscv_vse16_v_f16m1(to, __riscv_vfncvt_f_f_w_f16m1(first, vl), vl);
    __riscv_vse16_v_f16m1(to + kStepLanes, __riscv_vfncvt_f_f_w_f16m1(second, vl), vl);
  }
  SGL_RVV_LANES void store(Element* to, PartStep step, Float first, Float second, size_t vl) {
    const size_t count = step.count < vl ? step.count : vl;
    __riscv_vse16_v_f16m1(to, __riscv_vfncvt_f_f_w_f16m1(first, vl), count);
    __riscv_vse16_v_f16m1(to + kStepLanes, __riscv_vfncvt_f_f_w_f16m1(second, vl), rest_of(step));
  }

  template <class Step>
  SGL_RVV_LANES void load_pairs(const Element* from, Step step, Float& a, Float& b, size_t vl) {
    const vfloat16m1x2_t both = __riscv_vlseg2e16_v_f16m1x2(from, lanes_of_pairs(step, vl));
    a = widened(__riscv_vget_v_f16m1x2_f16m1(both, 0), vl);
    b = widened(__riscv_vget_v_f16m1x2_f16m1(both, 1), vl);
  }
  template <class Step>
  SGL_RVV_LANES void store_pairs(Element* to, Step step, Float a, Float b, size_t vl) {
    const vfloat16m1x2_t both = __riscv_vcreate_v_f16m1x2(__riscv_vfncvt_f_f_w_f16m1(a, vl),
                                                          __riscv_vfncvt_f_f_w_f16m1(b, vl));
    __riscv_vsseg2e16_v_f16m1x2(to, both, lanes_of_pairs(step, vl));
  }

 private:
  // A product with 1 takes half the time of a conversion on an X60.
  SGL_RVV_LANES Float widened(vfloat16m1_t value, size_t vl) {
    return __riscv_vfwmul_vf_f32m2(value, Element{1}, vl);
  }
};

}  // namespace sgl_rvv
