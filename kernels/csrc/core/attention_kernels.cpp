// The attention kernels of the registry.

#include "core/attention_kernels.h"

#include "core/registry.h"

namespace sgl_rvv {
namespace {

// Tiles are 32 keys wide on the portable path and VLEN / 8 elsewhere: 32 on the reference board.
constexpr Tile kTile = {0, 32};

constexpr Kernel attention(const char* name, Type type, Technique technique, Extensions needs,
                           Entry entry) {
  return {name, type, type, type, Type::kFp32, kTile, technique, needs, entry};
}

// Over an INT8 cache; `type` is that of queries and output.
constexpr Kernel int8_attention(const char* name, Type type, Technique technique, Extensions needs,
                                Entry entry) {
  return {name, type, Type::kInt8, type, Type::kFp32, kTile, technique, needs, entry};
}

// Rows of `type` into an INT8 cache; there is no right operand.
constexpr Kernel store(const char* name, Type type, Technique technique, Extensions needs,
                       Entry entry) {
  return {name, type, Type::kInt8, Type::kInt8, Type::kFp32, {0, 0}, technique, needs, entry};
}

constexpr Kernel kKernels[] = {
#if defined(__riscv)
    attention("decode_attention_bf16_tiled_rvv", Type::kBf16, Technique::kTiled, kRvv,
              decode_attention_bf16_rvv),
    attention("decode_attention_fp16_tiled_zvfh_rvv", Type::kFp16, Technique::kTiled, kRvvZvfh,
              decode_attention_fp16_zvfh),
    attention("decode_attention_fp16_tiled_rvv", Type::kFp16, Technique::kTiled, kRvv,
              decode_attention_fp16_rvv),
    attention("extend_attention_bf16_tiled_rvv", Type::kBf16, Technique::kTiled, kRvv,
              extend_attention_bf16_rvv),
    attention("extend_attention_fp16_tiled_zvfh_rvv", Type::kFp16, Technique::kTiled, kRvvZvfh,
              extend_attention_fp16_zvfh),
    attention("extend_attention_fp16_tiled_rvv", Type::kFp16, Technique::kTiled, kRvv,
              extend_attention_fp16_rvv),
    int8_attention("decode_attention_int8_bf16_tiled_rvv", Type::kBf16, Technique::kTiled, kRvv,
                   decode_attention_int8_bf16_rvv),
    int8_attention("decode_attention_int8_fp16_tiled_zvfh_rvv", Type::kFp16, Technique::kTiled,
                   kRvvZvfh, decode_attention_int8_fp16_zvfh),
    int8_attention("decode_attention_int8_fp16_tiled_rvv", Type::kFp16, Technique::kTiled, kRvv,
                   decode_attention_int8_fp16_rvv),
    int8_attention("extend_attention_int8_bf16_tiled_rvv", Type::kBf16, Technique::kTiled, kRvv,
                   extend_attention_int8_bf16_rvv),
    int8_attention("extend_attention_int8_fp16_tiled_zvfh_rvv", Type::kFp16, Technique::kTiled,
                   kRvvZvfh, extend_attention_int8_fp16_zvfh),
    int8_attention("extend_attention_int8_fp16_tiled_rvv", Type::kFp16, Technique::kTiled, kRvv,
                   extend_attention_int8_fp16_rvv),
    store("store_kv_bf16_along_row_rvv", Type::kBf16, Technique::kAlongK, kRvv, store_kv_bf16_rvv),
    store("store_kv_fp16_along_row_zvfh_rvv", Type::kFp16, Technique::kAlongK, kRvvZvfh,
          store_kv_fp16_zvfh),
    store("store_kv_fp16_along_row_rvv", Type::kFp16, Technique::kAlongK, kRvv, store_kv_fp16_rvv),
#endif
    attention("decode_attention_bf16_portable", Type::kBf16, Technique::kPortable, kNone,
              decode_attention_bf16_portable),
    attention("decode_attention_fp16_portable", Type::kFp16, Technique::kPortable, kNone,
              decode_attention_fp16_portable),
    attention("extend_attention_bf16_portable", Type::kBf16, Technique::kPortable, kNone,
              extend_attention_bf16_portable),
    attention("extend_attention_fp16_portable", Type::kFp16, Technique::kPortable, kNone,
              extend_attention_fp16_portable),
    int8_attention("decode_attention_int8_bf16_portable", Type::kBf16, Technique::kPortable, kNone,
                   decode_attention_int8_bf16_portable),
    int8_attention("decode_attention_int8_fp16_portable", Type::kFp16, Technique::kPortable, kNone,
                   decode_attention_int8_fp16_portable),
    int8_attention("extend_attention_int8_bf16_portable", Type::kBf16, Technique::kPortable, kNone,
                   extend_attention_int8_bf16_portable),
    int8_attention("extend_attention_int8_fp16_portable", Type::kFp16, Technique::kPortable, kNone,
                   extend_attention_int8_fp16_portable),
    store("store_kv_bf16_portable", Type::kBf16, Technique::kPortable, kNone,
          store_kv_bf16_portable),
    store("store_kv_fp16_portable", Type::kFp16, Technique::kPortable, kNone,
          store_kv_fp16_portable),
};

}  // namespace

KernelList attention_kernels() {
  return {kKernels, sizeof kKernels / sizeof kKernels[0]};
}

}  // namespace sgl_rvv
