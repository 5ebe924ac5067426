// Rotary position embedding of BF16, FP16 or FP32: the first `rotary` elements of each head of
// queries and keys are turned by the angles of their token's position, the others copied.
//
//   Neox         (x[i], x[i + rotary / 2]) is a pair, i < rotary / 2
//   interleaved  (x[2 i], x[2 i + 1]) is a pair
//   (x, y) -> (x cos[i] - y sin[i], y cos[i] + x sin[i])
//
// FP32 between input and output: a product, to which the other is added by a fused multiply-add;
// rounded once (to nearest even; a BF16 zero is +0). Cosines and sines are used as they are, also
// where they are FP32 and the heads are not. The same bits at every VLEN and from every kernel.
#pragma once

#include <cstdint>

#include "core/types.h"

namespace sgl_rvv {

// Heads of all tokens, [tokens, heads, head]; elements of a head are adjacent.
struct RotaryHeads {
  int64_t heads;
  const void* from;
  int64_t token_stride;
  int64_t head_stride;
  void* to;
  int64_t to_token_stride;
  int64_t to_head_stride;
};

struct Rotary {
  bool neox;
  int64_t head;
  int64_t rotary;  // even, at most kLargestRotary and `head`
  RotaryHeads query;
  RotaryHeads key;
  const int64_t* positions;  // [tokens], rows of the cache
  const void* cache;         // [positions, rotary]: cosines, then sines
  int64_t cache_stride;
  bool cache_is_float;  // FP32, else of the type of the heads
};

constexpr int64_t kLargestRotary = 1024;

// Computes units [begin, end) of tokens * (query.heads + key.heads): a head each, of a token first
// the queries, then the keys.
using RotaryKernel = void(const Rotary& call, int64_t begin, int64_t end);

}  // namespace sgl_rvv
