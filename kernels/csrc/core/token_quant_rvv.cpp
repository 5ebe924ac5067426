// Quantisation of activations, RVV 1.0: one pass for the largest magnitude, one for the codes.
//
// The largest magnitude is the largest pattern without its sign, as an integer: numbers, then
// infinity, then NaNs. One reduction ends a row. A code is the low byte of x * factor + 1.5 * 2^23,
// one FMA: the sum's last place is 1, and it rounds as the definition wants. 16-bit elements are
// taken in pairs, as lanes of 32 bits, whose two codes are put together before they are stored.
//
// Requires V. Alignment: rows to their elements.
// Modelled: see kernels/README.md.

#include <riscv_vector.h>

#include "core/all_lanes_rvv.h"
#include "core/bf16.h"
#include "core/fp16.h"
#include "core/fp16_lanes_rvv.h"
#include "core/kernels_rvv.h"
#include "core/nearest_rounding.h"
#include "core/quant_scale.h"

namespace sgl_rvv {
namespace {

#define SGL_RVV_INLINE inline __attribute__((always_inline))

constexpr float kShift = 0x1.8p23F;

struct Bf16 {
  static constexpr uint16_t kInfinity = 0x7f80;
  static SGL_RVV_INLINE float value(uint16_t bits) { return bf16_to_float(bits); }
  static SGL_RVV_INLINE vfloat32m4_t low(vuint32m4_t bits, vbool8_t all, size_t vl) {
    return __riscv_vreinterpret_v_u32m4_f32m4(__riscv_vsll_vx_u32m4_m(all, bits, 16, vl));
  }
  static SGL_RVV_INLINE vfloat32m4_t high(vuint32m4_t bits, vbool8_t all, size_t vl) {
    return __riscv_vreinterpret_v_u32m4_f32m4(__riscv_vand_vx_u32m4_m(all, bits, 0xffff0000U, vl));
  }
};

struct Fp16 {
  static constexpr uint16_t kInfinity = 0x7c00;
  static SGL_RVV_INLINE float value(uint16_t bits) { return fp16_to_float(bits); }
  static SGL_RVV_INLINE vfloat32m4_t low(vuint32m4_t bits, vbool8_t all, size_t vl) {
    return high(__riscv_vsll_vx_u32m4_m(all, bits, 16, vl), all, vl);
  }
  // Whole registers: what is beyond vl is not used.
  static SGL_RVV_INLINE vfloat32m4_t high(vuint32m4_t bits, vbool8_t, size_t) {
    const size_t half = __riscv_vsetvlmax_e32m2();
    const vbool16_t all = all_lanes(half);
    return __riscv_vcreate_v_f32m2_f32m4(
        fp16_from_high_half(__riscv_vget_v_u32m4_u32m2(bits, 0), all, half),
        fp16_from_high_half(__riscv_vget_v_u32m4_u32m2(bits, 1), all, half));
  }
};

uint16_t largest_16(const uint16_t* x, int64_t k) {
  const size_t most = __riscv_vsetvlmax_e16m8();
  vuint16m8_t largest = __riscv_vmv_v_x_u16m8(0, most);
  for (int64_t i = 0; i < k;) {
    const size_t vl = __riscv_vsetvl_e16m8(static_cast<size_t>(k - i));
    const vuint16m8_t magnitude =
        __riscv_vand_vx_u16m8(__riscv_vle16_v_u16m8(x + i, vl), 0x7fff, vl);
    largest = __riscv_vmaxu_vv_u16m8_tu(largest, largest, magnitude, vl);
    i += static_cast<int64_t>(vl);
  }
  const vuint16m1_t zero = __riscv_vmv_v_x_u16m1(0, 1);
  return __riscv_vmv_x_s_u16m1_u16(__riscv_vredmaxu_vs_u16m8_u16m1(largest, zero, most));
}

uint32_t largest_32(const uint32_t* x, int64_t k) {
  const size_t most = __riscv_vsetvlmax_e32m8();
  vuint32m8_t largest = __riscv_vmv_v_x_u32m8(0, most);
  for (int64_t i = 0; i < k;) {
    const size_t vl = __riscv_vsetvl_e32m8(static_cast<size_t>(k - i));
    const vuint32m8_t magnitude =
        __riscv_vand_vx_u32m8(__riscv_vle32_v_u32m8(x + i, vl), 0x7fffffff, vl);
    largest = __riscv_vmaxu_vv_u32m8_tu(largest, largest, magnitude, vl);
    i += static_cast<int64_t>(vl);
  }
  const vuint32m1_t zero = __riscv_vmv_v_x_u32m1(0, 1);
  return __riscv_vmv_x_s_u32m1_u32(__riscv_vredmaxu_vs_u32m8_u32m1(largest, zero, most));
}

// Codes of the lower halves are made 128 too large, so that none is negative: then a lane's two
// codes are put together by one exact FMA, upper * 256 + lower, and the bit is turned back in the
// 16 bits that are left.
template <class Format>
void codes_16(const uint16_t* x, int64_t k, float factor, int8_t* codes) {
  const size_t most = __riscv_vsetvlmax_e32m4();
  const vbool8_t all = all_lanes4(most);
  const vfloat32m4_t shift = __riscv_vfmv_v_f_f32m4(kShift, most);
  const vfloat32m4_t shift_low = __riscv_vfmv_v_f_f32m4(kShift + 128.0F, most);
  const auto pairs_of = [&](vuint32m4_t bits, size_t vl) {
    vfloat32m4_t low = __riscv_vfmadd_vf_f32m4(Format::low(bits, all, vl), factor, shift_low, vl);
    vfloat32m4_t high = __riscv_vfmadd_vf_f32m4(Format::high(bits, all, vl), factor, shift, vl);
    high = __riscv_vfsub_vf_f32m4(high, kShift, vl);
    low = __riscv_vfmacc_vf_f32m4(low, 256.0F, high, vl);
    const vuint16m2_t pairs =
        __riscv_vncvt_x_x_w_u16m2(__riscv_vreinterpret_v_f32m4_u32m4(low), vl);
    return __riscv_vreinterpret_v_u16m2_u8m2(__riscv_vxor_vx_u16m2(pairs, 0x80, vl));
  };
  auto* bytes = reinterpret_cast<uint8_t*>(codes);
  const int64_t even = k / 2 * 2;
  for (int64_t i = 0; i < even;) {
    const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(even - i) / 2);
    const vuint32m4_t bits =
        __riscv_vreinterpret_v_u16m4_u32m4(__riscv_vle16_v_u16m4(x + i, 2 * vl));
    __riscv_vse8_v_u8m2(bytes + i, pairs_of(bits, vl), 2 * vl);
    i += 2 * static_cast<int64_t>(vl);
  }
  // The last of an odd K, with a zero above it: what is undefined there would reach its sum.
  if (even < k)
    __riscv_vse8_v_u8m2(bytes + even, pairs_of(__riscv_vmv_s_x_u32m4(x[even], 1), 1), 1);
}

void codes_32(const float* x, int64_t k, float factor, int8_t* codes) {
  const size_t most = __riscv_vsetvlmax_e32m4();
  const vfloat32m4_t shift = __riscv_vfmv_v_f_f32m4(kShift, most);
  for (int64_t i = 0; i < k;) {
    const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(k - i));
    const vfloat32m4_t shifted =
        __riscv_vfmadd_vf_f32m4(__riscv_vle32_v_f32m4(x + i, vl), factor, shift, vl);
    const vuint16m2_t halves =
        __riscv_vncvt_x_x_w_u16m2(__riscv_vreinterpret_v_f32m4_u32m4(shifted), vl);
    __riscv_vse8_v_u8m1(reinterpret_cast<uint8_t*>(codes + i), __riscv_vncvt_x_x_w_u8m1(halves, vl),
                        vl);
    i += static_cast<int64_t>(vl);
  }
}

template <class Format>
void quantise_16(const TokenQuant& call, int64_t row_begin, int64_t row_end) {
  const NearestRounding nearest;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const uint16_t* x = static_cast<const uint16_t*>(call.rows) + row * call.stride;
    int8_t* codes = call.codes + row * call.k;
    const uint16_t largest = largest_16(x, call.k);
    const QuantScale of = quant_scale(Format::value(largest));
    call.scales[row] = of.scale;
    if (largest >= Format::kInfinity) {
      special_codes(x, call.k, Format::kInfinity, largest > Format::kInfinity, codes);
    } else {
      codes_16<Format>(x, call.k, of.factor, codes);
    }
  }
}

}  // namespace

void token_quant_bf16_rvv(const TokenQuant& call, int64_t row_begin, int64_t row_end) {
  quantise_16<Bf16>(call, row_begin, row_end);
}

void token_quant_fp16_rvv(const TokenQuant& call, int64_t row_begin, int64_t row_end) {
  quantise_16<Fp16>(call, row_begin, row_end);
}

void token_quant_fp32_rvv(const TokenQuant& call, int64_t row_begin, int64_t row_end) {
  constexpr uint32_t kInfinity = 0x7f800000U;
  const NearestRounding nearest;
  for (int64_t row = row_begin; row < row_end; ++row) {
    const float* x = static_cast<const float*>(call.rows) + row * call.stride;
    const auto* bits = reinterpret_cast<const uint32_t*>(x);
    int8_t* codes = call.codes + row * call.k;
    const uint32_t largest = largest_32(bits, call.k);
    float magnitude;
    std::memcpy(&magnitude, &largest, sizeof magnitude);
    const QuantScale of = quant_scale(magnitude);
    call.scales[row] = of.scale;
    if (largest >= kInfinity) {
      special_codes(bits, call.k, kInfinity, largest > kInfinity, codes);
    } else {
      codes_32(x, call.k, of.factor, codes);
    }
  }
}

}  // namespace sgl_rvv
