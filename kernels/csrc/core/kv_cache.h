// A KV cache of 16-bit rows, [slots, kv_heads, head], with any strides between slots and heads.
#pragma once

#include <cstdint>

namespace sgl_rvv {

// One KV head's rows by token. Row t has unit stride and begins at data + slot(t) * slot_stride.
struct KvRows {
  const uint16_t* data;
  int64_t slot_stride;   // elements, >= 0
  const int64_t* slots;  // the slot of each token; null: token t is in slot t

  [[nodiscard]] const uint16_t* row(int64_t token) const {
    return data + (slots == nullptr ? token : slots[token]) * slot_stride;
  }
  [[nodiscard]] KvRows from(int64_t token) const {
    if (slots == nullptr) return {data + token * slot_stride, slot_stride, nullptr};
    return {data, slot_stride, slots + token};
  }
};

// All KV heads' rows.
struct KvHeads {
  const uint16_t* data;
  int64_t slot_stride;
  int64_t head_stride;

  [[nodiscard]] KvRows of(int64_t kv_head, const int64_t* slots) const {
    return {data + kv_head * head_stride, slot_stride, slots};
  }
};

}  // namespace sgl_rvv
