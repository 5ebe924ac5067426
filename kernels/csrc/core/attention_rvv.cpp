// Attention with RVV 1.0 alone: BF16 as the high half of FP32, FP16 taken apart with integers.

#include "core/attention_int8_tiles_rvv.h"
#include "core/attention_kernels.h"
#include "core/attention_tiles_rvv.h"
#include "core/bf16_lanes_rvv.h"
#include "core/fp16.h"
#include "core/kv_rows_rvv.h"
#include "core/nearest_rounding.h"

namespace sgl_rvv {
namespace {

struct Bf16 {
  using Narrow = vuint16m2_t;
  static Narrow load(const uint16_t* row, size_t vl) { return __riscv_vle16_v_u16m2(row, vl); }
  static vfloat32m4_t widen(Narrow bits, size_t vl) {
    // Adding 0 widens in half the time of vzext.
    return even(__riscv_vwaddu_vx_u32m4(bits, 0, vl), all_lanes4(vl), vl);
  }
  static vfloat32m4_t even(vuint32m4_t pairs, vbool8_t all, size_t vl) {
    return __riscv_vreinterpret_v_u32m4_f32m4(__riscv_vsll_vx_u32m4_m(all, pairs, 16, vl));
  }
  static vfloat32m4_t odd(vuint32m4_t pairs, vbool8_t all, size_t vl) {
    return __riscv_vreinterpret_v_u32m4_f32m4(__riscv_vand_vx_u32m4_m(all, pairs, 0xffff0000U, vl));
  }
  static vfloat32m2_t even(vuint32m2_t pairs, vbool16_t all, size_t vl) {
    return bf16_from_low_half(pairs, all, vl);
  }
  static vfloat32m2_t odd(vuint32m2_t pairs, vbool16_t all, size_t vl) {
    return bf16_from_high_half(pairs, all, vl);
  }
  // `value` is the result of arithmetic, so a NaN is the canonical one, which rounding does not
  // touch.
  static void store(vfloat32m4_t value, uint16_t* out, size_t vl) {
    // The narrowing clip rounds the lower half off to nearest even, and never has to clip.
    const vuint32m4_t bits = __riscv_vreinterpret_v_f32m4_u32m4(value);
    __riscv_vse16_v_u16m2(out, __riscv_vnclipu_wx_u16m2(bits, 16, __RISCV_VXRM_RNE, vl), vl);
  }
};

struct Fp16 {
  using Narrow = vuint16m2_t;
  static Narrow load(const uint16_t* row, size_t vl) { return __riscv_vle16_v_u16m2(row, vl); }
  // Of groups of four registers and of two.
  template <class Pairs, class Mask>
  static auto even(Pairs pairs, Mask all, size_t vl) {
    return odd(__riscv_vsll(all, pairs, 16, vl), all, vl);
  }
  // As fp16_to_float(): the pattern without its sign, moved to where FP32 has exponent and
  // fraction.
  template <class Pairs, class Mask>
  static auto odd(Pairs pairs, Mask all, size_t vl) {
    const Pairs magnitude = __riscv_vsrl(all, __riscv_vand(all, pairs, 0x7fff0000U, vl), 3, vl);
    const Pairs sign = __riscv_vand(all, pairs, 0x80000000U, vl);
    const auto finite = __riscv_vfmul(numbers(magnitude), 0x1p112F, vl);
    Pairs bits = patterns(finite);
    const Mask special = __riscv_vmsgtu(magnitude, 0x0f7fffffU, vl);
    bits = __riscv_vor_mu(special, bits, magnitude, 0x7f800000U, vl);
    return numbers(__riscv_vor(all, bits, sign, vl));
  }
  static vfloat32m4_t numbers(vuint32m4_t bits) { return __riscv_vreinterpret_v_u32m4_f32m4(bits); }
  static vfloat32m2_t numbers(vuint32m2_t bits) { return __riscv_vreinterpret_v_u32m2_f32m2(bits); }
  static vuint32m4_t patterns(vfloat32m4_t x) { return __riscv_vreinterpret_v_f32m4_u32m4(x); }
  static vuint32m2_t patterns(vfloat32m2_t x) { return __riscv_vreinterpret_v_f32m2_u32m2(x); }
  static vfloat32m4_t widen(Narrow bits, size_t vl) {
    return even(__riscv_vwaddu_vx_u32m4(bits, 0, vl), all_lanes4(vl), vl);
  }
  // One by one: an output row is stored once for all the keys that it saw.
  static void store(vfloat32m4_t value, uint16_t* out, size_t vl) {
    for (size_t i = 0; i < vl; ++i) {
      const vfloat32m4_t from = __riscv_vslidedown_vx_f32m4(value, i, vl);
      out[i] = float_to_fp16(__riscv_vfmv_f_s_f32m4_f32(from));
    }
  }
};

}  // namespace

void decode_attention_bf16_rvv(const DecodeAttention& call, DecodeStage stage, int64_t begin,
                               int64_t end, const Scratch& scratch) {
  AttentionBlocks<RvvTiles<Bf16>>::decode(call, stage, begin, end, scratch);
}

void decode_attention_fp16_rvv(const DecodeAttention& call, DecodeStage stage, int64_t begin,
                               int64_t end, const Scratch& scratch) {
  AttentionBlocks<RvvTiles<Fp16>>::decode(call, stage, begin, end, scratch);
}

void extend_attention_bf16_rvv(const ExtendAttention& call, int64_t begin, int64_t end,
                               const Scratch& scratch) {
  AttentionBlocks<RvvTiles<Bf16>>::extend(call, begin, end, scratch);
}

void extend_attention_fp16_rvv(const ExtendAttention& call, int64_t begin, int64_t end,
                               const Scratch& scratch) {
  AttentionBlocks<RvvTiles<Fp16>>::extend(call, begin, end, scratch);
}

void decode_attention_int8_bf16_rvv(const DecodeAttentionInt8& call, DecodeStage stage,
                                    int64_t begin, int64_t end, const Scratch& scratch) {
  AttentionBlocks<RvvInt8Tiles<Bf16>>::decode(call, stage, begin, end, scratch);
}

void extend_attention_int8_bf16_rvv(const ExtendAttentionInt8& call, int64_t begin, int64_t end,
                                    const Scratch& scratch) {
  AttentionBlocks<RvvInt8Tiles<Bf16>>::extend(call, begin, end, scratch);
}

void decode_attention_int8_fp16_rvv(const DecodeAttentionInt8& call, DecodeStage stage,
                                    int64_t begin, int64_t end, const Scratch& scratch) {
  AttentionBlocks<RvvInt8Tiles<Fp16>>::decode(call, stage, begin, end, scratch);
}

void extend_attention_int8_fp16_rvv(const ExtendAttentionInt8& call, int64_t begin, int64_t end,
                                    const Scratch& scratch) {
  AttentionBlocks<RvvInt8Tiles<Fp16>>::extend(call, begin, end, scratch);
}

void store_kv_bf16_rvv(const StoreKv& call, StoreStage stage, int64_t begin, int64_t end) {
  const NearestRounding mode;
  store_kv<RvvKvRows<Bf16>>(call, stage, begin, end);
}

void store_kv_fp16_rvv(const StoreKv& call, StoreStage stage, int64_t begin, int64_t end) {
  const NearestRounding mode;
  store_kv<RvvKvRows<Fp16>>(call, stage, begin, end);
}

void exp_nonpositive_rvv(const float* x, int64_t count, float* out) {
  for (int64_t i = 0; i < count;) {
    const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(count - i));
    __riscv_vse32_v_f32m4(out + i, exp_nonpositive(__riscv_vle32_v_f32m4(x + i, vl), vl), vl);
    i += static_cast<int64_t>(vl);
  }
}

void exp_nonpositive_number_rvv(const float* x, int64_t count, float* out) {
  for (int64_t i = 0; i < count;) {
    const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(count - i));
    const vfloat32m4_t from = __riscv_vle32_v_f32m4(x + i, vl);
    __riscv_vse32_v_f32m4(out + i, exp_nonpositive_number(from, vl), vl);
    i += static_cast<int64_t>(vl);
  }
}

}  // namespace sgl_rvv
