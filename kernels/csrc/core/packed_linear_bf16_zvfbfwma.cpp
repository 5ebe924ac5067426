// BF16 packed linear, RVV 1.0 with Zvfbfwma: the widening technique (widening_rvv.h). Built where
// the compiler has the intrinsics (Clang 19, GCC 15). No X60 has Zvfbfwma, so no cost is modelled.
//
// Requires V, Zvfbfwma (and with it Zvfbfmin, Zfbfmin). Alignment: 2 bytes, bias 4 bytes.

#include "core/kernels_rvv.h"
#include "core/widening_rvv.h"

namespace sgl_rvv {
namespace {

struct Bf16 {
  using Element = __bf16;
  using Row = vbfloat16m2_t;

  static SGL_RVV_INLINE Row load(const Element* w, size_t vl) {
    return __riscv_vle16_v_bf16m2(w, vl);
  }
  static SGL_RVV_INLINE widening::Sums multiply_add(widening::Sums sums, Element a, Row row,
                                                    size_t vl) {
    return __riscv_vfwmaccbf16_vf_f32m4(sums, a, row, vl);
  }
  static SGL_RVV_INLINE void store_rounded(Element* out, widening::Sums sums, size_t vl) {
    __riscv_vse16_v_bf16m2(out, __riscv_vfncvtbf16_f_f_w_bf16m2(sums, vl), vl);
  }
};

}  // namespace

template <int Rows>
void packed_linear_bf16_widening_zvfbfwma_rvv(const PackedLinear& call, int64_t block_begin,
                                              int64_t block_end) {
  widening::linear<Bf16, Rows>(call, block_begin, block_end);
}

template PackedLinearKernel packed_linear_bf16_widening_zvfbfwma_rvv<1>;
template PackedLinearKernel packed_linear_bf16_widening_zvfbfwma_rvv<2>;
template PackedLinearKernel packed_linear_bf16_widening_zvfbfwma_rvv<3>;
template PackedLinearKernel packed_linear_bf16_widening_zvfbfwma_rvv<4>;
template PackedLinearKernel packed_linear_bf16_widening_zvfbfwma_rvv<5>;
template PackedLinearKernel packed_linear_bf16_widening_zvfbfwma_rvv<6>;

void packed_linear_bf16_widening_blocked_zvfbfwma_rvv(const PackedLinear& call, int64_t block_begin,
                                                      int64_t block_end) {
  widening::blocked<Bf16>(call, block_begin, block_end);
}

}  // namespace sgl_rvv
