// torch.ops.sgl_kernel: attention. Everything that could be read or written out of range is checked
// here, before anything is written; arithmetic in core/.

#include <ATen/MemoryOverlap.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "core/attention.h"
#include "core/registry.h"
#include "torch/attestation.h"
#include "torch/operands.h"
#include "torch/parallel.h"

namespace sgl_rvv {
namespace {

using at::Tensor;

// A tensor and what the caller calls it.
struct Named {
  const char* name;
  const Tensor& tensor;
};

// 16-bit rows [*, *, width] of the type of `like`, which is returned; negative sizes: any.
Type check_rows(const char* op, const Named& of, const Tensor& like, int64_t count, int64_t heads,
                int64_t width) {
  check_cpu(op, of.name, of.tensor);
  const Tensor& rows = of.tensor;
  TORCH_CHECK_VALUE(rows.dim() == 3, op, ": ", of.name, " must have 3 dimensions, but has shape ",
                    rows.sizes());
  const Type type = check_16_bits(op, of.name, rows);
  TORCH_CHECK_TYPE(rows.scalar_type() == like.scalar_type(), op, ": ", of.name, " is ",
                   rows.scalar_type(), ", but the query is ", like.scalar_type());
  const std::pair<int64_t, const char*> wanted[] = {
      {count, " in dimension 0"}, {heads, " heads"}, {width, " elements a head"}};
  for (int64_t i = 0; i < 3; ++i) {
    TORCH_CHECK_VALUE(wanted[i].first < 0 || rows.size(i) == wanted[i].first, op, ": ", of.name,
                      " must have ", wanted[i].first, wanted[i].second, ", but has shape ",
                      rows.sizes());
  }
  return type;
}

// Rows that are written in place, or too large to be copied.
void check_adjacent(const char* op, const Named& of) {
  TORCH_CHECK_VALUE(of.tensor.stride(-1) == 1 || of.tensor.size(-1) <= 1, op, ": ", of.name,
                    " must have adjacent elements in its last dimension, but has strides ",
                    of.tensor.strides());
}

void check_written(const char* op, const Named& written, std::initializer_list<Named> others) {
  TORCH_CHECK_VALUE(at::has_internal_overlap(written.tensor) != at::MemOverlap::Yes, op, ": ",
                    written.name, " must not overlap itself, but has strides ",
                    written.tensor.strides());
  for (const Named& other : others) {
    const at::MemOverlapStatus status = at::get_overlap_status(written.tensor, other.tensor);
    TORCH_CHECK_VALUE(
        status != at::MemOverlapStatus::Full && status != at::MemOverlapStatus::Partial, op, ": ",
        written.name, " must not overlap ", other.name);
  }
}

void check_integers(const char* op, const Named& of) {
  check_cpu(op, of.name, of.tensor);
  TORCH_CHECK_TYPE(of.tensor.scalar_type() == at::kInt || of.tensor.scalar_type() == at::kLong, op,
                   ": ", of.name, " must be int32 or int64, but is ", of.tensor.scalar_type());
}

// A vector of `count` integers within [0, end).
std::vector<int64_t> integers(const char* op, const Named& of, int64_t count, int64_t end) {
  check_integers(op, of);
  TORCH_CHECK_VALUE(of.tensor.dim() == 1 && of.tensor.size(0) == count, op, ": ", of.name,
                    " must have shape [", count, "], but has ", of.tensor.sizes());
  const Tensor wide = of.tensor.to(at::kLong).contiguous();
  const int64_t* values = wide.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < count; ++i) {
    TORCH_CHECK_INDEX(values[i] >= 0 && values[i] < end, op, ": ", of.name, "[", i, "] is ",
                      values[i], ", but must be from 0 to ", end - 1);
  }
  return {values, values + count};
}

// The slots of tokens [0, length) of each sequence, one sequence after the other.
struct Slots {
  std::vector<int64_t> slots;
  std::vector<int64_t> begins;
};

template <class Integer>
void append_slots(const char* op, const Tensor& req_to_token, int64_t row, int64_t length,
                  int64_t end, std::vector<int64_t>& slots) {
  const Integer* from = req_to_token.const_data_ptr<Integer>() + row * req_to_token.stride(0);
  const int64_t stride = req_to_token.stride(1);
  for (int64_t i = 0; i < length; ++i) {
    const int64_t slot = from[i * stride];
    TORCH_CHECK_INDEX(slot >= 0 && slot < end, op, ": req_to_token[", row, ", ", i, "] is ", slot,
                      ", but the cache has slots from 0 to ", end - 1);
    slots.push_back(slot);
  }
}

Slots slots_of(const char* op, const Tensor& req_to_token, const std::vector<int64_t>& rows,
               const std::vector<int64_t>& lengths, int64_t end) {
  Slots result;
  result.begins.push_back(0);
  for (size_t i = 0; i < rows.size(); ++i) {
    TORCH_CHECK_INDEX(lengths[i] <= req_to_token.size(1), op, ": sequence ", i, " has ", lengths[i],
                      " tokens in the cache, but req_to_token has columns for ",
                      req_to_token.size(1));
    if (req_to_token.scalar_type() == at::kInt) {
      append_slots<int32_t>(op, req_to_token, rows[i], lengths[i], end, result.slots);
    } else {
      append_slots<int64_t>(op, req_to_token, rows[i], lengths[i], end, result.slots);
    }
    result.begins.push_back(static_cast<int64_t>(result.slots.size()));
  }
  return result;
}

void check_req_to_token(const char* op, const Tensor& req_to_token) {
  check_integers(op, {"req_to_token", req_to_token});
  TORCH_CHECK_VALUE(req_to_token.dim() == 2, op,
                    ": req_to_token must have 2 dimensions, but has shape ", req_to_token.sizes());
}

AttentionSizes sizes_of(const char* op, const Tensor& query, const Tensor& keys,
                        const Tensor& values, double sm_scale, double logit_cap) {
  const AttentionSizes sizes = {query.size(1),
                                keys.size(1),
                                query.size(2),
                                values.size(2),
                                static_cast<float>(sm_scale),
                                static_cast<float>(logit_cap)};
  TORCH_CHECK_VALUE(sizes.kv_heads > 0 && sizes.heads > 0 && sizes.heads % sizes.kv_heads == 0, op,
                    ": the query's ", sizes.heads, " heads must be a multiple of the ",
                    sizes.kv_heads, " KV heads");
  for (const int64_t head : {sizes.head, sizes.head_v}) {
    TORCH_CHECK_VALUE(head > 0 && head % kHeadStep == 0 && head <= kLargestHead, op,
                      ": a head must have a multiple of ", kHeadStep, " elements up to ",
                      kLargestHead, ", but there is one of ", head);
  }
  TORCH_CHECK_VALUE(std::isfinite(sm_scale), op, ": sm_scale must be finite, but is ", sm_scale);
  TORCH_CHECK_VALUE(std::isfinite(logit_cap) && logit_cap >= 0, op,
                    ": logit_cap must be 0 (none) or positive, but is ", logit_cap);
  return sizes;
}

KvHeads heads_of(const Tensor& rows) {
  return {bits_of(rows), rows.stride(0), rows.stride(1)};
}

QueryRows queries_of(const Tensor& rows) {
  return {bits_of(rows), rows.stride(0), rows.stride(1)};
}

OutputRows outputs_of(const Tensor& rows) {
  return {mutable_bits_of(rows), rows.stride(0), rows.stride(1)};
}

int64_t threads() {
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

// Scratch for `shares` threads, made before they start.
class ScratchOfThreads {
 public:
  ScratchOfThreads(int64_t shares, int64_t floats, const Tensor& like)
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
  Tensor memory_;
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

// Puts each sequence's new row at its slot.
void write_rows(const Tensor& cache, const Tensor& rows, const std::vector<int64_t>& loc) {
  const auto bytes = static_cast<size_t>(rows.size(2)) * sizeof(uint16_t);
  for (int64_t i = 0; i < rows.size(0); ++i) {
    for (int64_t head = 0; head < rows.size(1); ++head) {
      std::memcpy(mutable_bits_of(cache) + loc[static_cast<size_t>(i)] * cache.stride(0) +
                      head * cache.stride(1),
                  bits_of(rows) + i * rows.stride(0) + head * rows.stride(1), bytes);
    }
  }
}

void decode_attention_cpu(const Tensor& query, const Tensor& k_cache, const Tensor& v_cache,
                          const Tensor& output, const Tensor& key, const Tensor& value,
                          const Tensor& loc, const Tensor& attn_logits, const Tensor& req_to_token,
                          const Tensor& req_pool_indices, const Tensor& seq_lens, double sm_scale,
                          double logit_cap) {
  constexpr const char* kOp = "decode_attention_cpu";
  RECORD_FUNCTION("sgl-kernel::decode_attention_cpu", c10::ArrayRef<const c10::IValue>{});
  const Type type = check_rows(kOp, {"query", query}, query, -1, -1, -1);
  check_rows(kOp, {"k_cache", k_cache}, query, -1, -1, query.size(2));
  check_rows(kOp, {"v_cache", v_cache}, query, k_cache.size(0), k_cache.size(1), -1);
  const AttentionSizes sizes = sizes_of(kOp, query, k_cache, v_cache, sm_scale, logit_cap);
  const int64_t sequences = query.size(0);
  const int64_t slots_end = k_cache.size(0);
  check_rows(kOp, {"output", output}, query, sequences, sizes.heads, sizes.head_v);
  check_rows(kOp, {"key", key}, query, sequences, sizes.kv_heads, sizes.head);
  check_rows(kOp, {"value", value}, query, sequences, sizes.kv_heads, sizes.head_v);
  for (const Named& written : {Named{"k_cache", k_cache},
                               {"v_cache", v_cache},
                               {"output", output},
                               {"attn_logits", attn_logits}}) {
    check_adjacent(kOp, written);
  }
  check_cpu(kOp, "attn_logits", attn_logits);
  TORCH_CHECK_TYPE(attn_logits.scalar_type() == at::kFloat, kOp,
                   ": attn_logits must be float32, but is ", attn_logits.scalar_type());
  TORCH_CHECK_VALUE(attn_logits.dim() == 4 && attn_logits.size(0) == sequences &&
                        attn_logits.size(1) == sizes.heads && attn_logits.size(2) > 0 &&
                        attn_logits.size(3) == sizes.head_v + 1,
                    kOp, ": attn_logits must have shape [", sequences, ", ", sizes.heads,
                    ", splits, ", sizes.head_v + 1, "], but has ", attn_logits.sizes());
  check_written(kOp, {"output", output},
                {{"query", query},
                 {"key", key},
                 {"value", value},
                 {"k_cache", k_cache},
                 {"v_cache", v_cache},
                 {"attn_logits", attn_logits}});
  check_written(kOp, {"k_cache", k_cache},
                {{"query", query},
                 {"key", key},
                 {"value", value},
                 {"v_cache", v_cache},
                 {"attn_logits", attn_logits}});
  check_written(kOp, {"v_cache", v_cache},
                {{"query", query}, {"key", key}, {"value", value}, {"attn_logits", attn_logits}});
  check_written(kOp, {"attn_logits", attn_logits},
                {{"query", query}, {"key", key}, {"value", value}});
  check_req_to_token(kOp, req_to_token);
  const std::vector<int64_t> written = integers(kOp, {"loc", loc}, sequences, slots_end);
  const std::vector<int64_t> pool =
      integers(kOp, {"req_pool_indices", req_pool_indices}, sequences, req_to_token.size(0));
  const std::vector<int64_t> lengths =
      integers(kOp, {"seq_lens", seq_lens}, sequences, req_to_token.size(1) + 1);
  const Slots slots = slots_of(kOp, req_to_token, pool, lengths, slots_end);
  if (sequences == 0) return;

  write_rows(k_cache, with_adjacent(key), written);
  write_rows(v_cache, with_adjacent(value), written);
  const Tensor queries = with_adjacent(query);
  const Kernel& kernel = chosen_kernel(Operation::kDecodeAttention, type, sizes.group());
  const int64_t shares = threads();
  const DecodeAttention call = {sizes,
                                sequences,
                                queries_of(queries),
                                heads_of(k_cache),
                                heads_of(v_cache),
                                slots.slots.data(),
                                slots.begins.data(),
                                attn_logits.mutable_data_ptr<float>(),
                                attn_logits.stride(0),
                                attn_logits.stride(1),
                                attn_logits.stride(2),
                                decode_splits(sizes.kv_heads, shares, attn_logits.size(2)),
                                attn_logits.size(2),
                                outputs_of(output)};
  const ScratchOfThreads scratch(
      shares, decode_scratch_floats(sizes, call.splits, score_columns(cpu_features())), query);
  DecodeAttentionKernel* entry = std::get<DecodeAttentionKernel*>(kernel.entry);
  for (const auto& [stage, units] : {std::pair{DecodeStage::kAttend, decode_units(call)},
                                     std::pair{DecodeStage::kMerge, merge_units(call)}}) {
    share_out(units, shares, scratch, [&, at = stage](int64_t unit, const Scratch& mine) {
      entry(call, at, unit, unit + 1, mine);
    });
  }
  count_call(kOp, kernel.name);
}

// The sequences of an extend call; `slots` must outlive them.
std::vector<ExtendSequence> extend_sequences(const char* op, const std::vector<int64_t>& lengths,
                                             const std::vector<int64_t>& firsts, const Slots& slots,
                                             int64_t tokens) {
  std::vector<ExtendSequence> sequences;
  for (size_t i = 0; i < lengths.size(); ++i) {
    TORCH_CHECK_INDEX(firsts[i] + lengths[i] <= tokens, op, ": sequence ", i, " has tokens from ",
                      firsts[i], " to ", firsts[i] + lengths[i] - 1, ", but q_extend has ", tokens);
    sequences.push_back({firsts[i], lengths[i], slots.begins[i + 1] - slots.begins[i],
                         slots.slots.data() + slots.begins[i]});
  }
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const ExtendSequence& one : sequences) {
    if (one.tokens > 0) ranges.emplace_back(one.first, one.first + one.tokens);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    TORCH_CHECK_VALUE(ranges[i].first >= ranges[i - 1].second, op, ": two sequences share token ",
                      ranges[i].first, ", see extend_start_loc and extend_seq_lens");
  }
  return sequences;
}

void extend_attention_cpu(const Tensor& q_extend, const Tensor& k_extend, const Tensor& v_extend,
                          const Tensor& o_extend, const Tensor& k_buffer, const Tensor& v_buffer,
                          const Tensor& req_to_token, const Tensor& req_pool_indices,
                          const Tensor& seq_lens, const Tensor& extend_seq_lens,
                          const Tensor& extend_start_loc, int64_t max_len_extend, double sm_scale,
                          double logit_cap) {
  constexpr const char* kOp = "extend_attention_cpu";
  RECORD_FUNCTION("sgl-kernel::extend_attention_cpu", c10::ArrayRef<const c10::IValue>{});
  const Type type = check_rows(kOp, {"q_extend", q_extend}, q_extend, -1, -1, -1);
  const int64_t tokens = q_extend.size(0);
  check_rows(kOp, {"k_extend", k_extend}, q_extend, tokens, -1, q_extend.size(2));
  check_rows(kOp, {"v_extend", v_extend}, q_extend, tokens, k_extend.size(1), -1);
  const AttentionSizes sizes = sizes_of(kOp, q_extend, k_extend, v_extend, sm_scale, logit_cap);
  check_rows(kOp, {"o_extend", o_extend}, q_extend, tokens, sizes.heads, sizes.head_v);
  check_rows(kOp, {"k_buffer", k_buffer}, q_extend, -1, sizes.kv_heads, sizes.head);
  check_rows(kOp, {"v_buffer", v_buffer}, q_extend, k_buffer.size(0), sizes.kv_heads, sizes.head_v);
  for (const Named& large :
       {Named{"o_extend", o_extend}, {"k_buffer", k_buffer}, {"v_buffer", v_buffer}}) {
    check_adjacent(kOp, large);
  }
  check_written(kOp, {"o_extend", o_extend},
                {{"q_extend", q_extend},
                 {"k_extend", k_extend},
                 {"v_extend", v_extend},
                 {"k_buffer", k_buffer},
                 {"v_buffer", v_buffer}});
  check_req_to_token(kOp, req_to_token);
  TORCH_CHECK_VALUE(seq_lens.dim() == 1, kOp, ": seq_lens must have 1 dimension, but has shape ",
                    seq_lens.sizes());
  const int64_t count = seq_lens.size(0);
  const std::vector<int64_t> pool =
      integers(kOp, {"req_pool_indices", req_pool_indices}, count, req_to_token.size(0));
  const std::vector<int64_t> totals =
      integers(kOp, {"seq_lens", seq_lens}, count, req_to_token.size(1) + tokens + 1);
  const std::vector<int64_t> lengths =
      integers(kOp, {"extend_seq_lens", extend_seq_lens}, count, tokens + 1);
  const std::vector<int64_t> firsts =
      integers(kOp, {"extend_start_loc", extend_start_loc}, count, tokens + 1);
  std::vector<int64_t> prefixes;
  for (size_t i = 0; i < totals.size(); ++i) {
    TORCH_CHECK_VALUE(lengths[i] <= totals[i], kOp, ": extend_seq_lens[", i, "] is ", lengths[i],
                      ", more than seq_lens[", i, "] = ", totals[i]);
    TORCH_CHECK_VALUE(lengths[i] <= max_len_extend, kOp, ": extend_seq_lens[", i, "] is ",
                      lengths[i], ", more than max_len_extend = ", max_len_extend);
    prefixes.push_back(totals[i] - lengths[i]);
  }
  const Slots slots = slots_of(kOp, req_to_token, pool, prefixes, k_buffer.size(0));
  const std::vector<ExtendSequence> sequences =
      extend_sequences(kOp, lengths, firsts, slots, tokens);

  const int64_t shares = threads();
  int64_t largest_unit = 0;
  const std::vector<ExtendUnit> units = extend_units(
      sequences.data(), static_cast<int64_t>(sequences.size()), sizes, shares, &largest_unit);
  if (units.empty()) return;
  const Kernel& kernel = chosen_kernel(Operation::kExtendAttention, type, sizes.group());
  const Tensor queries = with_adjacent(q_extend);
  const Tensor keys = with_adjacent(k_extend);
  const Tensor values = with_adjacent(v_extend);
  const ExtendAttention call = {sizes,
                                sequences.data(),
                                units.data(),
                                largest_unit,
                                queries_of(queries),
                                heads_of(keys),
                                heads_of(values),
                                heads_of(k_buffer),
                                heads_of(v_buffer),
                                outputs_of(o_extend)};
  const ScratchOfThreads scratch(
      shares, extend_scratch_floats(sizes, largest_unit, score_columns(cpu_features())), q_extend);
  ExtendAttentionKernel* entry = std::get<ExtendAttentionKernel*>(kernel.entry);
  share_out(static_cast<int64_t>(units.size()), shares, scratch,
            [&](int64_t unit, const Scratch& mine) { entry(call, unit, unit + 1, mine); });
  count_call(kOp, kernel.name);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sgl_kernel, m) {
  m.def(
      "decode_attention_cpu(Tensor query, Tensor(a!) k_cache, Tensor(b!) v_cache, "
      "Tensor(c!) output, Tensor key, Tensor value, Tensor loc, Tensor(d!) attn_logits, "
      "Tensor req_to_token, Tensor req_pool_indices, Tensor seq_lens, float sm_scale, "
      "float logit_cap) -> ()");
  m.def(
      "extend_attention_cpu(Tensor q_extend, Tensor k_extend, Tensor v_extend, "
      "Tensor(a!) o_extend, Tensor k_buffer, Tensor v_buffer, Tensor req_to_token, "
      "Tensor req_pool_indices, Tensor seq_lens, Tensor extend_seq_lens, "
      "Tensor extend_start_loc, int max_len_extend, float sm_scale, float logit_cap) -> ()");
}

TORCH_LIBRARY_IMPL(sgl_kernel, CPU, m) {
  m.impl("decode_attention_cpu", &decode_attention_cpu);
  m.impl("extend_attention_cpu", &extend_attention_cpu);
}

}  // namespace sgl_rvv
