// A KV cache, [slots, kv_heads, head], with any strides between slots and heads: rows of 16-bit
// numbers, or of INT8 codes with a scale for each row.
#pragma once

#include <cstdint>

namespace sgl_rvv {

// One KV head's rows by token. Row t has unit stride and begins at data + slot(t) * slot_stride.
template <class Element>
struct KvRowsOf {
  const Element* data;
  int64_t slot_stride;   // elements, >= 0
  const int64_t* slots;  // the slot of each token; null: token t is in slot t

  [[nodiscard]] int64_t slot(int64_t token) const {
    return slots == nullptr ? token : slots[token];
  }
  [[nodiscard]] const Element* row(int64_t token) const { return data + slot(token) * slot_stride; }
  [[nodiscard]] KvRowsOf from(int64_t token) const {
    if (slots == nullptr) return {data + token * slot_stride, slot_stride, nullptr};
    return {data, slot_stride, slots + token};
  }
};

// All KV heads' rows.
template <class Element>
struct KvHeadsOf {
  const Element* data;
  int64_t slot_stride;
  int64_t head_stride;

  [[nodiscard]] KvRowsOf<Element> of(int64_t kv_head, const int64_t* slots) const {
    return {data + kv_head * head_stride, slot_stride, slots};
  }
};

using KvRows = KvRowsOf<uint16_t>;
using KvHeads = KvHeadsOf<uint16_t>;

// Rows of codes: element i of a row is code[i] times the row's scale. Scales are either one for all
// rows or, where `scales` is not null, one for each slot, at scales + slot * scale_stride.
struct Int8Rows {
  KvRowsOf<int8_t> codes;  // reached through slots
  const float* scales;
  int64_t scale_stride;  // floats, >= 0
  float scale;

  [[nodiscard]] float scale_of(int64_t token) const {
    return scales == nullptr ? scale : scales[codes.slot(token) * scale_stride];
  }
  [[nodiscard]] Int8Rows from(int64_t token) const {
    return {codes.from(token), scales, scale_stride, scale};
  }
};

struct Int8Heads {
  KvHeadsOf<int8_t> codes;
  const float* scales;
  int64_t scale_slot_stride;
  int64_t scale_head_stride;
  float scale;

  // `slots` must not be null.
  [[nodiscard]] Int8Rows of(int64_t kv_head, const int64_t* slots) const {
    return {codes.of(kv_head, slots),
            scales == nullptr ? nullptr : scales + kv_head * scale_head_stride, scale_slot_stride,
            scale};
  }
};

}  // namespace sgl_rvv
