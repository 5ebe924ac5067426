// FP16 attention with RVV 1.0 and Zvfh: the conversions are instructions.

#include "core/attention_int8_tiles_rvv.h"
#include "core/attention_kernels.h"
#include "core/attention_tiles_rvv.h"
#include "core/kv_rows_rvv.h"
#include "core/nearest_rounding.h"

namespace sgl_rvv {
namespace {

struct Fp16Zvfh {
  using Narrow = vuint16m2_t;
  static Narrow load(const uint16_t* row, size_t vl) { return __riscv_vle16_v_u16m2(row, vl); }
  static vfloat32m4_t widen(Narrow bits, size_t vl) {
    return __riscv_vfwcvt_f_f_v_f32m4(__riscv_vreinterpret_v_u16m2_f16m2(bits), vl);
  }
  static vfloat32m4_t even(vuint32m4_t pairs, vbool8_t all, size_t vl) {
    return widen(__riscv_vnsrl_wx_u16m2_m(all, pairs, 0, vl), vl);
  }
  static vfloat32m4_t odd(vuint32m4_t pairs, vbool8_t all, size_t vl) {
    return widen(__riscv_vnsrl_wx_u16m2_m(all, pairs, 16, vl), vl);
  }
  static vfloat32m2_t even(vuint32m2_t pairs, vbool16_t all, size_t vl) {
    return widen(__riscv_vnsrl_wx_u16m1_m(all, pairs, 0, vl), vl);
  }
  static vfloat32m2_t odd(vuint32m2_t pairs, vbool16_t all, size_t vl) {
    return widen(__riscv_vnsrl_wx_u16m1_m(all, pairs, 16, vl), vl);
  }
  static vfloat32m2_t widen(vuint16m1_t bits, size_t vl) {
    return __riscv_vfwcvt_f_f_v_f32m2(__riscv_vreinterpret_v_u16m1_f16m1(bits), vl);
  }
  static void store(vfloat32m4_t value, uint16_t* out, size_t vl) {
    const vfloat16m2_t rounded = __riscv_vfncvt_f_f_w_f16m2(value, vl);
    __riscv_vse16_v_u16m2(out, __riscv_vreinterpret_v_f16m2_u16m2(rounded), vl);
  }
};

}  // namespace

void decode_attention_fp16_zvfh(const DecodeAttention& call, DecodeStage stage, int64_t begin,
                                int64_t end, const Scratch& scratch) {
  AttentionBlocks<RvvTiles<Fp16Zvfh>>::decode(call, stage, begin, end, scratch);
}

void extend_attention_fp16_zvfh(const ExtendAttention& call, int64_t begin, int64_t end,
                                const Scratch& scratch) {
  AttentionBlocks<RvvTiles<Fp16Zvfh>>::extend(call, begin, end, scratch);
}

void decode_attention_int8_fp16_zvfh(const DecodeAttentionInt8& call, DecodeStage stage,
                                     int64_t begin, int64_t end, const Scratch& scratch) {
  AttentionBlocks<RvvInt8Tiles<Fp16Zvfh>>::decode(call, stage, begin, end, scratch);
}

void extend_attention_int8_fp16_zvfh(const ExtendAttentionInt8& call, int64_t begin, int64_t end,
                                     const Scratch& scratch) {
  AttentionBlocks<RvvInt8Tiles<Fp16Zvfh>>::extend(call, begin, end, scratch);
}

void store_kv_fp16_zvfh(const StoreKv& call, StoreStage stage, int64_t begin, int64_t end) {
  const NearestRounding mode;
  store_kv<RvvKvRows<Fp16Zvfh>>(call, stage, begin, end);
}

}  // namespace sgl_rvv
