// FP16 packed linear, RVV 1.0 with Zvfh: the widening technique (widening_rvv.h). Modelled: see
// kernels/README.md.
//
// Requires V, Zfh, Zvfh. Alignment: 2 bytes, bias 4 bytes.

#include "core/kernels_rvv.h"
#include "core/widening_rvv.h"

namespace sgl_rvv {
namespace {

struct Fp16 {
  using Element = _Float16;
  using Row = vfloat16m2_t;

  static SGL_RVV_INLINE Row load(const Element* w, size_t vl) {
    return __riscv_vle16_v_f16m2(w, vl);
  }
  static SGL_RVV_INLINE widening::Sums multiply_add(widening::Sums sums, Element a, Row row,
                                                    size_t vl) {
    return __riscv_vfwmacc_vf_f32m4(sums, a, row, vl);
  }
  static SGL_RVV_INLINE void store_rounded(Element* out, widening::Sums sums, size_t vl) {
    __riscv_vse16_v_f16m2(out, __riscv_vfncvt_f_f_w_f16m2(sums, vl), vl);
  }
};

}  // namespace

template <int Rows>
void packed_linear_fp16_widening_zvfh_rvv(const PackedLinear& call, int64_t block_begin,
                                          int64_t block_end) {
  widening::linear<Fp16, Rows>(call, block_begin, block_end);
}

template PackedLinearKernel packed_linear_fp16_widening_zvfh_rvv<1>;
template PackedLinearKernel packed_linear_fp16_widening_zvfh_rvv<2>;
template PackedLinearKernel packed_linear_fp16_widening_zvfh_rvv<3>;
template PackedLinearKernel packed_linear_fp16_widening_zvfh_rvv<4>;
template PackedLinearKernel packed_linear_fp16_widening_zvfh_rvv<5>;
template PackedLinearKernel packed_linear_fp16_widening_zvfh_rvv<6>;

void packed_linear_fp16_widening_blocked_zvfh_rvv(const PackedLinear& call, int64_t block_begin,
                                                  int64_t block_end) {
  widening::blocked<Fp16>(call, block_begin, block_end);
}

}  // namespace sgl_rvv
