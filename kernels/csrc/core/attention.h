// Attention over a KV cache: out = softmax(scale * q k^T) v, for queries that share a KV head in
// groups (MHA: groups of one; MQA: one group). FP32 throughout; only inputs and output are 16-bit,
// or the cache INT8 (kv_store.h puts rows there).
//
// A query with nothing to attend to gives 0. With a cap c > 0 a score s becomes c * tanh(s / c). A
// NaN among the scores of a query, or in a value row that it sees, makes its output NaN; rows that
// it does not see (later tokens, other sequences) do not touch it, whatever they hold.
//
// Indices are not checked here: every slot must be within the cache.
#pragma once

#include <cstdint>
#include <vector>

#include "core/cpu.h"
#include "core/kv_cache.h"

namespace sgl_rvv {

struct AttentionSizes {
  int64_t heads;  // a multiple of kv_heads
  int64_t kv_heads;
  int64_t head;    // a multiple of kHeadStep
  int64_t head_v;  // likewise
  float scale;
  float cap;  // 0: none; else kLeastLogitCap to kLargestLogitCap

  [[nodiscard]] int64_t group() const { return heads / kv_heads; }
};

constexpr int64_t kHeadStep = 8;
constexpr int64_t kLargestHead = 512;

// A capped score is cap * tanh(score / cap), computed with an error of about 2^-23 cap: larger caps
// would lose the scores, smaller ones their reciprocal. Models have 30 to 50.
constexpr float kLeastLogitCap = 0x1p-20F;
constexpr float kLargestLogitCap = 4096.0F;

// Rows of 16-bit elements by token and head; unit stride within a row.
struct QueryRows {
  const uint16_t* data;
  int64_t token_stride;
  int64_t head_stride;
};

struct OutputRows {
  uint16_t* data;
  int64_t token_stride;
  int64_t head_stride;
};

// What one thread needs to work, in FP32 elements; 64-byte alignment.
struct Scratch {
  float* data;
  int64_t floats;
};

// One new token for each sequence; its key and value are in the cache already.
//
// A sequence's tokens are divided among `splits` splits. Split i of (sequence, head) leaves its
// normalised result in partials[sequence, head, i, 0 .. head_v) and the logarithm of its sum of
// exponentials behind it, at [.., head_v]; -infinity there marks a split that saw nothing, whose
// result is not read. All `max_splits` marks are written.
template <class Heads>
struct DecodeAttentionOf {
  AttentionSizes sizes;
  int64_t sequences;
  QueryRows query;
  Heads keys;
  Heads values;
  const int64_t* slots;        // of all tokens, sequence after sequence
  const int64_t* slots_begin;  // [sequences + 1]: where each sequence's begin
  float* partials;
  int64_t partial_sequence_stride;
  int64_t partial_head_stride;
  int64_t partial_split_stride;
  int64_t splits;      // at most this many, see decode_splits()
  int64_t max_splits;  // that `partials` has
  OutputRows output;
};

using DecodeAttention = DecodeAttentionOf<KvHeads>;
using DecodeAttentionInt8 = DecodeAttentionOf<Int8Heads>;

// How many splits to use on `threads` threads: enough that the KV heads of one sequence keep all
// threads busy, at most `max_splits`. It does not depend on the batch, so neither does a sequence's
// result.
[[nodiscard]] int64_t decode_splits(int64_t kv_heads, int64_t threads, int64_t max_splits);

// Tokens of each split but the last, for a sequence of `length` tokens: at least kLeastSplit.
[[nodiscard]] int64_t split_tokens(int64_t length, int64_t splits);
constexpr int64_t kLeastSplit = 64;

// Units of work of the first stage (sequence, KV head, split); any order, any thread.
template <class Heads>
[[nodiscard]] int64_t decode_units(const DecodeAttentionOf<Heads>& call) {
  return call.sequences * call.sizes.kv_heads * call.splits;
}

// Units of the second stage (sequence, head), after all of the first.
template <class Heads>
[[nodiscard]] int64_t merge_units(const DecodeAttentionOf<Heads>& call) {
  return call.sequences * call.sizes.heads;
}

// New tokens of each sequence behind a prefix that is in the cache; each sees the prefix and the
// new tokens up to itself.
struct ExtendSequence {
  int64_t first;         // row of its first new token in query, keys, values and output
  int64_t tokens;        // new ones
  int64_t prefix;        // tokens in the cache
  const int64_t* slots;  // [prefix]; of an INT8 cache [prefix + tokens]
};

// Positions [position, position + positions) of a sequence's new tokens, for one KV head.
struct ExtendUnit {
  int64_t sequence;
  int64_t kv_head;
  int64_t position;
  int64_t positions;
};

struct ExtendAttention {
  AttentionSizes sizes;
  const ExtendSequence* sequences;
  const ExtendUnit* units;
  int64_t largest_unit;  // positions
  QueryRows query;
  KvHeads new_keys;  // by new token
  KvHeads new_values;
  KvHeads keys;  // the cache
  KvHeads values;
  OutputRows output;
};

// The new keys and values are in the cache already.
struct ExtendAttentionInt8 {
  AttentionSizes sizes;
  const ExtendSequence* sequences;
  const ExtendUnit* units;
  int64_t largest_unit;
  QueryRows query;
  Int8Heads keys;
  Int8Heads values;
  OutputRows output;
};

// The units of a call, and how many positions the largest has: about kUnitRows queries share the
// conversion of a block of keys and values, fewer where that would leave threads idle.
constexpr int64_t kUnitRows = 256;
[[nodiscard]] std::vector<ExtendUnit> extend_units(const ExtendSequence* sequences, int64_t count,
                                                   const AttentionSizes& sizes, int64_t threads,
                                                   int64_t* largest_unit);

// Scratch of one thread, in FP32 elements. `columns` as of score_columns().
[[nodiscard]] int64_t decode_scratch_floats(const AttentionSizes& sizes, int64_t splits,
                                            int64_t columns);
[[nodiscard]] int64_t extend_scratch_floats(const AttentionSizes& sizes, int64_t largest_unit,
                                            int64_t columns);

// Keys in one tile of scores: VLEN / 8, at least 32 (what the portable kernels use).
[[nodiscard]] int64_t score_columns(const CpuFeatures& cpu);

// kAttend: decode_units(); then, when all of them are done, kMerge: merge_units().
enum class DecodeStage { kAttend, kMerge };

// Kernels compute units [begin, end) one by one, and end the process where `scratch` is smaller
// than the functions above say.
using DecodeAttentionKernel = void(const DecodeAttention& call, DecodeStage stage, int64_t begin,
                                   int64_t end, const Scratch& scratch);
using ExtendAttentionKernel = void(const ExtendAttention& call, int64_t begin, int64_t end,
                                   const Scratch& scratch);
using DecodeAttentionInt8Kernel = void(const DecodeAttentionInt8& call, DecodeStage stage,
                                       int64_t begin, int64_t end, const Scratch& scratch);
using ExtendAttentionInt8Kernel = void(const ExtendAttentionInt8& call, int64_t begin, int64_t end,
                                       const Scratch& scratch);

}  // namespace sgl_rvv
