// Rows of an INT8 cache (kv_store.h) with RVV 1.0. Only for files that are compiled with V;
// `Element` as in attention_tiles_rvv.h.
#pragma once

#include <riscv_vector.h>

#include <cstdint>

#include "core/attention_tiles_rvv.h"
#include "core/kv_store.h"

namespace sgl_rvv {
namespace {

template <class Element>
struct RvvKvRows {
  static float largest(const uint16_t* row, int64_t width) {
    const size_t most = __riscv_vsetvlmax_e32m4();
    vfloat32m4_t highest = __riscv_vfmv_v_f_f32m4(0.0F, most);
    vfloat32m4_t check = highest;  // 0 times anything but a number is NaN
    for (int64_t i = 0; i < width;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(width - i));
      const vfloat32m4_t x = Element::widen(Element::load(row + i, vl), vl);
      highest = __riscv_vfmax_vv_f32m4_tu(highest, highest, __riscv_vfabs_v_f32m4(x, vl), vl);
      check = __riscv_vfmacc_vf_f32m4_tu(check, 0.0F, x, vl);
      i += static_cast<int64_t>(vl);
    }
    const vfloat32m1_t zero = __riscv_vfmv_s_f_f32m1(0.0F, 1);
    const size_t lanes = __riscv_vsetvlmax_e32m1();
    const vfloat32m1_t peak = highest_lane(highest, zero);
    const vfloat32m1_t sum = __riscv_vfredusum_vs_f32m1_f32m1(added_up(check), zero, lanes);
    return __riscv_vfmv_f_s_f32m1_f32(__riscv_vfadd_vv_f32m1(peak, sum, 1));
  }

  static void encode(const uint16_t* row, int64_t width, float inverse, int8_t* out) {
    for (int64_t i = 0; i < width;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(width - i));
      const vfloat32m4_t x = Element::widen(Element::load(row + i, vl), vl);
      vfloat32m4_t code = __riscv_vfmul_vf_f32m4(x, inverse, vl);
      code = __riscv_vfmin_vf_f32m4(code, kLargestCode, vl);
      code = __riscv_vfmax_vf_f32m4(code, -kLargestCode, vl);
      const vint16m2_t rounded = __riscv_vfncvt_x_f_w_i16m2(code, vl);
      __riscv_vse8_v_i8m1(out + i, __riscv_vncvt_x_x_w_i8m1(rounded, vl), vl);
      i += static_cast<int64_t>(vl);
    }
  }
};

}  // namespace
}  // namespace sgl_rvv
