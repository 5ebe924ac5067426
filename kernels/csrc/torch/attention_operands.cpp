#include "torch/attention_operands.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "torch/operands.h"
#include "torch/overlap.h"

namespace sgl_rvv {

using at::Tensor;

namespace {

void check_integers(const char* op, const Named& of) {
  check_cpu(op, of.name, of.tensor);
  TORCH_CHECK_TYPE(of.tensor.scalar_type() == at::kInt || of.tensor.scalar_type() == at::kLong, op,
                   ": ", of.name, " must be int32 or int64, but is ", of.tensor.scalar_type());
}

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

}  // namespace

void check_rows_shape(const char* op, const Named& of, int64_t count, int64_t heads,
                      int64_t width) {
  check_cpu(op, of.name, of.tensor);
  const Tensor& rows = of.tensor;
  TORCH_CHECK_VALUE(rows.dim() == 3, op, ": ", of.name, " must have 3 dimensions, but has shape ",
                    rows.sizes());
  const std::pair<int64_t, const char*> wanted[] = {
      {count, " in dimension 0"}, {heads, " heads"}, {width, " elements a head"}};
  for (int64_t i = 0; i < 3; ++i) {
    TORCH_CHECK_VALUE(wanted[i].first < 0 || rows.size(i) == wanted[i].first, op, ": ", of.name,
                      " must have ", wanted[i].first, wanted[i].second, ", but has shape ",
                      rows.sizes());
  }
}

Type check_rows(const char* op, const Named& of, const Tensor& like, int64_t count, int64_t heads,
                int64_t width) {
  const Type type = check_16_bits(op, of.name, of.tensor);
  TORCH_CHECK_TYPE(of.tensor.scalar_type() == like.scalar_type(), op, ": ", of.name, " is ",
                   of.tensor.scalar_type(), ", but the query is ", like.scalar_type());
  check_rows_shape(op, of, count, heads, width);
  return type;
}

void check_adjacent(const char* op, const Named& of) {
  TORCH_CHECK_VALUE(of.tensor.stride(-1) == 1 || of.tensor.size(-1) <= 1, op, ": ", of.name,
                    " must have adjacent elements in its last dimension, but has strides ",
                    of.tensor.strides());
}

void check_written(const char* op, const Named& written, std::initializer_list<Named> others) {
  check_no_self_overlap(op, written.name, written.tensor);
  for (const Named& other : others) {
    check_no_overlap(op, written.name, written.tensor, other.name, other.tensor);
  }
}

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
  TORCH_CHECK_VALUE(std::isfinite(sizes.scale), op, ": sm_scale must be a finite float32, but is ",
                    sm_scale);
  TORCH_CHECK_VALUE(
      logit_cap == 0 || (sizes.cap >= kLeastLogitCap && sizes.cap <= kLargestLogitCap), op,
      ": logit_cap must be 0 (none) or from ", kLeastLogitCap, " to ", kLargestLogitCap,
      ", but is ", logit_cap);
  return sizes;
}

void check_logits(const char* op, const Tensor& attn_logits, int64_t sequences,
                  const AttentionSizes& sizes) {
  check_cpu(op, "attn_logits", attn_logits);
  TORCH_CHECK_TYPE(attn_logits.scalar_type() == at::kFloat, op,
                   ": attn_logits must be float32, but is ", attn_logits.scalar_type());
  TORCH_CHECK_VALUE(attn_logits.dim() == 4 && attn_logits.size(0) == sequences &&
                        attn_logits.size(1) == sizes.heads && attn_logits.size(2) > 0 &&
                        attn_logits.size(3) == sizes.head_v + 1,
                    op, ": attn_logits must have shape [", sequences, ", ", sizes.heads,
                    ", splits, ", sizes.head_v + 1, "], but has ", attn_logits.sizes());
}

std::vector<int64_t> prefixes_of(const char* op, const std::vector<int64_t>& totals,
                                 const std::vector<int64_t>& lengths, int64_t max_len_extend) {
  std::vector<int64_t> prefixes;
  for (size_t i = 0; i < totals.size(); ++i) {
    TORCH_CHECK_VALUE(lengths[i] <= totals[i], op, ": extend_seq_lens[", i, "] is ", lengths[i],
                      ", more than seq_lens[", i, "] = ", totals[i]);
    TORCH_CHECK_VALUE(lengths[i] <= max_len_extend, op, ": extend_seq_lens[", i, "] is ",
                      lengths[i], ", more than max_len_extend = ", max_len_extend);
    prefixes.push_back(totals[i] - lengths[i]);
  }
  return prefixes;
}

std::vector<ExtendSequence> extend_sequences(const char* op, const std::vector<int64_t>& prefixes,
                                             const std::vector<int64_t>& lengths,
                                             const std::vector<int64_t>& firsts, const Slots& slots,
                                             int64_t tokens) {
  std::vector<ExtendSequence> sequences;
  for (size_t i = 0; i < lengths.size(); ++i) {
    TORCH_CHECK_INDEX(firsts[i] + lengths[i] <= tokens, op, ": sequence ", i, " has tokens from ",
                      firsts[i], " to ", firsts[i] + lengths[i] - 1, ", but q_extend has ", tokens);
    sequences.push_back({firsts[i], lengths[i], prefixes[i], slots.slots.data() + slots.begins[i]});
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

QueryRows queries_of(const Tensor& rows) {
  return {bits_of(rows), rows.stride(0), rows.stride(1)};
}

OutputRows outputs_of(const Tensor& rows) {
  return {mutable_bits_of(rows), rows.stride(0), rows.stride(1)};
}

int64_t threads() {
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

}  // namespace sgl_rvv
