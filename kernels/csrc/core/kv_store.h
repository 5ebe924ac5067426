// Putting new rows of keys or values into an INT8 cache (kv_cache.h). Symmetric: a row x becomes
// code[i] = round(x[i] * inverse), ties to even whatever rounding mode is in force, within -127 and
// 127.
//
// Dynamic: each row of each KV head has a scale of its own, a = max |x|: scale = a / 127, inverse =
// 127 / a, both rounded to FP32. A row with a < kLeastLargest counts as zeros: codes 0, scale 1.
// Static: one scale for all rows, inverse = 1 / scale; what is too large saturates.
//
// Rows must be finite: kMeasure tells which are not. Results are the same bits on every machine.
// Slots are not checked here; where two tokens have the same slot, the later one stays.
#pragma once

#include <cstdint>

#include "core/kv_cache.h"

namespace sgl_rvv {

constexpr float kLargestCode = 127.0F;
constexpr float kLeastLargest = 0x1p-100F;  // keeps 127 / a and a / 127 normal

struct StoreKv {
  int64_t tokens;
  int64_t kv_heads;
  int64_t width;         // elements of a row
  KvHeads rows;          // by new token
  const int64_t* slots;  // [tokens]: where they go
  int8_t* codes;         // the cache
  int64_t code_slot_stride;
  int64_t code_head_stride;
  float* scales;  // dynamic: [slots, kv_heads]; static: null
  int64_t scale_slot_stride;
  int64_t scale_head_stride;
  float scale;     // static; 1 / scale must be finite
  float* largest;  // [kv_heads, tokens]: max |x| of each row, NaN where one is NaN or infinite
};

struct RowScale {
  float scale;
  float inverse;
};

// `largest` is a finite number.
[[nodiscard]] inline RowScale row_scale(const StoreKv& call, float largest) {
  if (call.scales == nullptr) return {call.scale, 1.0F / call.scale};
  if (largest < kLeastLargest) return {1.0F, 0.0F};
  return {largest / kLargestCode, kLargestCode / largest};
}

// kMeasure writes `largest` and nothing else; kStore reads it.
enum class StoreStage { kMeasure, kStore };

// KV heads [begin, end).
using StoreKvKernel = void(const StoreKv& call, StoreStage stage, int64_t begin, int64_t end);

// The kernels over their rows; `Rows` says how, for one element type and instruction set:
//
//   largest(row, width)               as StoreKv::largest
//   encode(row, width, inverse, out)  out[width]: codes
template <class Rows>
class KvStore {
 public:
  static void run(const StoreKv& call, StoreStage stage, int64_t begin, int64_t end) {
    for (int64_t head = begin; head < end; ++head) {
      if (stage == StoreStage::kMeasure) {
        measure(call, head);
      } else {
        store(call, head);
      }
    }
  }

 private:
  static void measure(const StoreKv& call, int64_t head) {
    const KvRows rows = call.rows.of(head, nullptr);
    for (int64_t token = 0; token < call.tokens; ++token) {
      call.largest[head * call.tokens + token] = Rows::largest(rows.row(token), call.width);
    }
  }

  static void store(const StoreKv& call, int64_t head) {
    const KvRows rows = call.rows.of(head, nullptr);
    for (int64_t token = 0; token < call.tokens; ++token) {
      const int64_t slot = call.slots[token];
      const RowScale scale = row_scale(call, call.largest[head * call.tokens + token]);
      Rows::encode(rows.row(token), call.width, scale.inverse,
                   call.codes + slot * call.code_slot_stride + head * call.code_head_stride);
      if (call.scales != nullptr) {
        call.scales[slot * call.scale_slot_stride + head * call.scale_head_stride] = scale.scale;
      }
    }
  }
};

// A kernel: its arithmetic is in a function of its own, as NearestRounding wants it.
template <class Rows>
__attribute__((noinline)) void store_kv(const StoreKv& call, StoreStage stage, int64_t begin,
                                        int64_t end) {
  KvStore<Rows>::run(call, stage, begin, end);
}

}  // namespace sgl_rvv
