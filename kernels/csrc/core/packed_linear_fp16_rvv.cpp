// FP16 packed linear for RVV 1.0 without Zvfh: the N-pair technique (npair_rvv.h), FP16 taken apart
// and put together by integer instructions (fp16_lanes_rvv.h).
//
// Requires V. Alignment: weight 4 bytes, out 2 bytes, left and bias 4 bytes. The conversion, nine
// integer instructions for 32 weights, is what limits it at few rows: see kernels/README.md.

#include "core/fp16_lanes_rvv.h"
#include "core/kernels_rvv.h"
#include "core/npair_rvv.h"

namespace sgl_rvv {
namespace {

using namespace npair;

struct Fp16Lanes {
  static SGL_RVV_INLINE Float even(Bits row, Mask all, size_t vl) {
    return fp16_from_high_half(__riscv_vsll_vx_u32m2_m(all, row, 16, vl), all, vl);
  }

  static SGL_RVV_INLINE Float odd(Bits row, Mask all, size_t vl) {
    return fp16_from_high_half(row, all, vl);
  }

  static SGL_RVV_INLINE Bits round(Float even, Float odd, Mask all, size_t vl) {
    const Bits high = __riscv_vsll_vx_u32m2_m(all, fp16_to_low_half(odd, all, vl), 16, vl);
    return __riscv_vor_vv_u32m2_m(all, fp16_to_low_half(even, all, vl), high, vl);
  }
};

// Twelve accumulators and the conversion's temporaries do not fit the registers: three rows at a
// time.
void accumulate_six(const float* a, const uint32_t* w, int64_t k, float* sums, bool resume,
                    size_t vl) {
  accumulate<Fp16Lanes, 3, 6>(a, w, k, sums, resume, vl);
  accumulate<Fp16Lanes, 3, 6>(a + 3, w, k, sums + 3 * kRowSums, resume, vl);
}

constexpr Accumulate* kTiles[kTileRows] = {accumulate<Fp16Lanes, 1>, accumulate<Fp16Lanes, 2>,
                                           accumulate<Fp16Lanes, 3>, accumulate<Fp16Lanes, 4>,
                                           accumulate<Fp16Lanes, 5>, accumulate_six};

}  // namespace

void packed_linear_fp16_npair_rvv(const PackedLinear& call, int64_t block_begin,
                                  int64_t block_end) {
  blocked<Fp16Lanes>(call, block_begin, block_end, kTiles);
}

}  // namespace sgl_rvv
