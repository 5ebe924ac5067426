// Attention in plain C++, for every machine.

#include "core/attention_int8_tiles_portable.h"
#include "core/attention_kernels.h"
#include "core/exp.h"
#include "core/kv_rows_portable.h"
#include "core/nearest_rounding.h"

namespace sgl_rvv {

void decode_attention_bf16_portable(const DecodeAttention& call, DecodeStage stage, int64_t begin,
                                    int64_t end, const Scratch& scratch) {
  AttentionBlocks<PortableTiles<Bf16>>::decode(call, stage, begin, end, scratch);
}

void decode_attention_fp16_portable(const DecodeAttention& call, DecodeStage stage, int64_t begin,
                                    int64_t end, const Scratch& scratch) {
  AttentionBlocks<PortableTiles<Fp16>>::decode(call, stage, begin, end, scratch);
}

void extend_attention_bf16_portable(const ExtendAttention& call, int64_t begin, int64_t end,
                                    const Scratch& scratch) {
  AttentionBlocks<PortableTiles<Bf16>>::extend(call, begin, end, scratch);
}

void extend_attention_fp16_portable(const ExtendAttention& call, int64_t begin, int64_t end,
                                    const Scratch& scratch) {
  AttentionBlocks<PortableTiles<Fp16>>::extend(call, begin, end, scratch);
}

void decode_attention_int8_bf16_portable(const DecodeAttentionInt8& call, DecodeStage stage,
                                         int64_t begin, int64_t end, const Scratch& scratch) {
  AttentionBlocks<PortableInt8Tiles<Bf16>>::decode(call, stage, begin, end, scratch);
}

void extend_attention_int8_bf16_portable(const ExtendAttentionInt8& call, int64_t begin,
                                         int64_t end, const Scratch& scratch) {
  AttentionBlocks<PortableInt8Tiles<Bf16>>::extend(call, begin, end, scratch);
}

void decode_attention_int8_fp16_portable(const DecodeAttentionInt8& call, DecodeStage stage,
                                         int64_t begin, int64_t end, const Scratch& scratch) {
  AttentionBlocks<PortableInt8Tiles<Fp16>>::decode(call, stage, begin, end, scratch);
}

void extend_attention_int8_fp16_portable(const ExtendAttentionInt8& call, int64_t begin,
                                         int64_t end, const Scratch& scratch) {
  AttentionBlocks<PortableInt8Tiles<Fp16>>::extend(call, begin, end, scratch);
}

void store_kv_bf16_portable(const StoreKv& call, StoreStage stage, int64_t begin, int64_t end) {
  const NearestRounding mode;
  store_kv<PortableKvRows<Bf16>>(call, stage, begin, end);
}

void store_kv_fp16_portable(const StoreKv& call, StoreStage stage, int64_t begin, int64_t end) {
  const NearestRounding mode;
  store_kv<PortableKvRows<Fp16>>(call, stage, begin, end);
}

void exp_nonpositive_portable(const float* x, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = exp_nonpositive(x[i]);
}

}  // namespace sgl_rvv
