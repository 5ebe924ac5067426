// The attention kernels by name; which of them exist depends on the architecture (registry.h lists
// those that do). With an INT8 cache the type in the name is that of queries and output.
#pragma once

#include "core/attention.h"
#include "core/kv_store.h"

namespace sgl_rvv {

DecodeAttentionKernel decode_attention_bf16_portable;
DecodeAttentionKernel decode_attention_fp16_portable;
ExtendAttentionKernel extend_attention_bf16_portable;
ExtendAttentionKernel extend_attention_fp16_portable;
DecodeAttentionInt8Kernel decode_attention_int8_bf16_portable;
DecodeAttentionInt8Kernel decode_attention_int8_fp16_portable;
ExtendAttentionInt8Kernel extend_attention_int8_bf16_portable;
ExtendAttentionInt8Kernel extend_attention_int8_fp16_portable;
StoreKvKernel store_kv_bf16_portable;
StoreKvKernel store_kv_fp16_portable;

// RVV 1.0.
DecodeAttentionKernel decode_attention_bf16_rvv;
DecodeAttentionKernel decode_attention_fp16_rvv;
ExtendAttentionKernel extend_attention_bf16_rvv;
ExtendAttentionKernel extend_attention_fp16_rvv;
DecodeAttentionInt8Kernel decode_attention_int8_bf16_rvv;
DecodeAttentionInt8Kernel decode_attention_int8_fp16_rvv;
ExtendAttentionInt8Kernel extend_attention_int8_bf16_rvv;
ExtendAttentionInt8Kernel extend_attention_int8_fp16_rvv;
StoreKvKernel store_kv_bf16_rvv;
StoreKvKernel store_kv_fp16_rvv;

// RVV 1.0 and Zvfh.
DecodeAttentionKernel decode_attention_fp16_zvfh;
ExtendAttentionKernel extend_attention_fp16_zvfh;
DecodeAttentionInt8Kernel decode_attention_int8_fp16_zvfh;
ExtendAttentionInt8Kernel extend_attention_int8_fp16_zvfh;
StoreKvKernel store_kv_fp16_zvfh;

// The exponential that the kernels above use (exp.h), over an array, so that it can be tested by
// itself.
using ExpKernel = void(const float* x, int64_t count, float* out);
ExpKernel exp_nonpositive_portable;
ExpKernel exp_nonpositive_rvv;
ExpKernel exp_nonpositive_number_rvv;  // for arguments that are not NaN

}  // namespace sgl_rvv
