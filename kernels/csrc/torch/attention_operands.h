// What the attention operators ask of their tensors, and how their work is shared out.
//
// Every check names the operator and the argument. ValueError for shapes and values, TypeError for
// types, IndexError for what points out of range.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "core/attention.h"
#include "core/registry.h"
#include "torch/parallel.h"

namespace sgl_rvv {

// A tensor and what the caller calls it.
struct Named {
  const char* name;
  const at::Tensor& tensor;
};

// [count, heads, width]; negative sizes: any.
void check_rows_shape(const char* op, const Named& of, int64_t count, int64_t heads, int64_t width);

// 16-bit rows of that shape, of the type of `like`, which is returned.
Type check_rows(const char* op, const Named& of, const at::Tensor& like, int64_t count,
                int64_t heads, int64_t width);

// Rows that are written in place, or too large to be copied.
void check_adjacent(const char* op, const Named& of);

void check_written(const char* op, const Named& written, std::initializer_list<Named> others);

// A vector of `count` integers within [0, end).
[[nodiscard]] std::vector<int64_t> integers(const char* op, const Named& of, int64_t count,
                                            int64_t end);

// Slots of tokens of each sequence, one sequence after the other.
struct Slots {
  std::vector<int64_t> slots;
  std::vector<int64_t> begins;
};

// Of tokens [0, lengths[i]) of each sequence, which has row rows[i] of `req_to_token`; all of them
// within [0, end).
[[nodiscard]] Slots slots_of(const char* op, const at::Tensor& req_to_token,
                             const std::vector<int64_t>& rows, const std::vector<int64_t>& lengths,
                             int64_t end);

void check_req_to_token(const char* op, const at::Tensor& req_to_token);

[[nodiscard]] AttentionSizes sizes_of(const char* op, const at::Tensor& query,
                                      const at::Tensor& keys, const at::Tensor& values,
                                      double sm_scale, double logit_cap);

// FP32 [sequences, heads, splits, head_v + 1].
void check_logits(const char* op, const at::Tensor& attn_logits, int64_t sequences,
                  const AttentionSizes& sizes);

// totals - lengths, by sequence.
[[nodiscard]] std::vector<int64_t> prefixes_of(const char* op, const std::vector<int64_t>& totals,
                                               const std::vector<int64_t>& lengths,
                                               int64_t max_len_extend);

// The sequences of an extend call, whose slots begin with those of the prefix; `slots` must outlive
// them.
[[nodiscard]] std::vector<ExtendSequence> extend_sequences(const char* op,
                                                           const std::vector<int64_t>& prefixes,
                                                           const std::vector<int64_t>& lengths,
                                                           const std::vector<int64_t>& firsts,
                                                           const Slots& slots, int64_t tokens);

[[nodiscard]] QueryRows queries_of(const at::Tensor& rows);
[[nodiscard]] OutputRows outputs_of(const at::Tensor& rows);

// Threads that work can be shared among here.
[[nodiscard]] int64_t threads();

// Scratch for `shares` threads, made before they start.
class ScratchOfThreads {
 public:
  ScratchOfThreads(int64_t shares, int64_t floats, const at::Tensor& like)
      : floats_(floats),
        memory_(at::empty({shares * floats + kLine}, like.options().dtype(at::kFloat))) {
    void* start = memory_.mutable_data_ptr();
    size_t space = static_cast<size_t>(memory_.nbytes());
    start_ = static_cast<float*>(std::align(kLine * sizeof(float), 1, start, space));
  }
  [[nodiscard]] Scratch of(int64_t share) const { return {start_ + share * floats_, floats_}; }

 private:
  static constexpr int64_t kLine = 16;  // floats in 64 bytes
  int64_t floats_;
  at::Tensor memory_;
  float* start_;
};

// Runs `work(unit, scratch)` for all units. Units are dealt out in turn: neighbours, which cost
// about the same, go to different threads.
template <class Work>
void share_out(int64_t units, int64_t shares, const ScratchOfThreads& scratch, Work&& work) {
  parallel_for(std::min(units, shares), [&](int64_t begin, int64_t end) {
    for (int64_t share = begin; share < end; ++share) {
      for (int64_t unit = share; unit < units; unit += shares) work(unit, scratch.of(share));
    }
  });
}

template <class Heads, class Entry>
void run_decode(const DecodeAttentionOf<Heads>& call, Entry* entry, int64_t shares,
                const at::Tensor& like) {
  const ScratchOfThreads scratch(
      shares, decode_scratch_floats(call.sizes, call.splits, score_columns(cpu_features())), like);
  for (const auto& [stage, units] : {std::pair{DecodeStage::kAttend, decode_units(call)},
                                     std::pair{DecodeStage::kMerge, merge_units(call)}}) {
    share_out(units, shares, scratch, [&, at = stage](int64_t unit, const Scratch& mine) {
      entry(call, at, unit, unit + 1, mine);
    });
  }
}

template <class Call, class Entry>
void run_extend(const Call& call, Entry* entry, int64_t units, int64_t shares,
                const at::Tensor& like) {
  const ScratchOfThreads scratch(
      shares, extend_scratch_floats(call.sizes, call.largest_unit, score_columns(cpu_features())),
      like);
  share_out(units, shares, scratch,
            [&](int64_t unit, const Scratch& mine) { entry(call, unit, unit + 1, mine); });
}

}  // namespace sgl_rvv
