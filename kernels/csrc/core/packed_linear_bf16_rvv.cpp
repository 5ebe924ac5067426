// BF16 packed linear, RVV 1.0: the N-pair technique (npair_rvv.h).
//
// A BF16 is the high half of an FP32: shifting a lane left by 16 makes its even column an FP32,
// masking it with 0xffff0000 its odd one. The result is (odd & 0xffff0000) | even >> 16.
//
// Requires V; no Zvfh, no Zvfbfmin. Alignment: weight 4 bytes, out 2 bytes, left and bias 4 bytes.
// Modelled on the SpacemiT X60 (VLEN 256, data in L1): see kernels/README.md.

#include "core/bf16_lanes_rvv.h"
#include "core/kernels_rvv.h"
#include "core/npair_rvv.h"
#include "core/npair_six_bf16_rvv.h"

namespace sgl_rvv {
namespace {

using namespace npair;

struct Bf16Lanes {
  static SGL_RVV_INLINE Float even(Bits row, Mask all, size_t vl) {
    return bf16_from_low_half(row, all, vl);
  }

  static SGL_RVV_INLINE Float odd(Bits row, Mask all, size_t vl) {
    return bf16_from_high_half(row, all, vl);
  }

  static SGL_RVV_INLINE Bits round(Float even, Float odd, Mask all, size_t vl) {
    const Bits low = __riscv_vsrl_vx_u32m2_m(all, to_high_half(even, all, vl), 16, vl);
    const Bits high = __riscv_vand_vx_u32m2_m(all, to_high_half(odd, all, vl), kHighHalf, vl);
    return __riscv_vor_vv_u32m2_m(all, low, high, vl);
  }

 private:
  // FP32 to BF16 in the high half of each lane, to nearest even; the low half is left over. `value`
  // comes from an FMA or an addition, so a NaN is the canonical one (0x7fc00000), the only one that
  // RISC-V arithmetic makes: the increment does not reach its exponent, and it stays the canonical
  // NaN of BF16.
  static SGL_RVV_INLINE Bits to_high_half(Float value, Mask all, size_t vl) {
    const Bits bits = __riscv_vreinterpret_v_f32m2_u32m2(value);
    const Bits kept = __riscv_vsrl_vx_u32m2_m(all, bits, 16, vl);
    const Bits lowest_kept = __riscv_vand_vx_u32m2_m(all, kept, 1, vl);
    const Bits increment = __riscv_vadd_vx_u32m2_m(all, lowest_kept, 0x7fff, vl);
    return __riscv_vadd_vv_u32m2_m(all, bits, increment, vl);
  }
};

void accumulate_six(const float* a, const uint32_t* w, int64_t k, float* sums, bool resume,
                    size_t vl) {
  const int64_t even = k / 2 * 2;
  if (even > 0) accumulate_six_bf16(a, w, even, sums, resume, vl);
  if (even < k) {
    accumulate<Bf16Lanes, 6>(a + even * kTileRows, w + even * kLanes, 1, sums, resume || even > 0,
                             vl);
  }
}

constexpr Accumulate* kTiles[kTileRows] = {accumulate<Bf16Lanes, 1>, accumulate<Bf16Lanes, 2>,
                                           accumulate<Bf16Lanes, 3>, accumulate<Bf16Lanes, 4>,
                                           accumulate<Bf16Lanes, 5>, accumulate_six};

}  // namespace

template <int Rows>
void packed_linear_bf16_npair_rvv(const PackedLinear& call, int64_t block_begin,
                                  int64_t block_end) {
  linear<Bf16Lanes, Rows>(call, block_begin, block_end);
}

template PackedLinearKernel packed_linear_bf16_npair_rvv<1>;
template PackedLinearKernel packed_linear_bf16_npair_rvv<2>;
template PackedLinearKernel packed_linear_bf16_npair_rvv<3>;
template PackedLinearKernel packed_linear_bf16_npair_rvv<4>;
template PackedLinearKernel packed_linear_bf16_npair_rvv<5>;
template PackedLinearKernel packed_linear_bf16_npair_rvv<6>;

void packed_linear_bf16_npair_blocked_rvv(const PackedLinear& call, int64_t block_begin,
                                          int64_t block_end) {
  blocked<Bf16Lanes>(call, block_begin, block_end, kTiles);
}

}  // namespace sgl_rvv
