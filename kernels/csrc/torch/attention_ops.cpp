// torch.ops.sgl_kernel: attention. Everything that could be read or written out of range is checked
// here, before anything is written; arithmetic in core/.

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <cstdint>
#include <cstring>
#include <variant>
#include <vector>

#include "core/attention.h"
#include "core/registry.h"
#include "torch/attention_operands.h"
#include "torch/attestation.h"
#include "torch/operands.h"

namespace sgl_rvv {
namespace {

using at::Tensor;

KvHeads heads_of(const Tensor& rows) {
  return {bits_of(rows), rows.stride(0), rows.stride(1)};
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
  check_logits(kOp, attn_logits, sequences, sizes);
  for (const Named& written : {Named{"k_cache", k_cache},
                               {"v_cache", v_cache},
                               {"output", output},
                               {"attn_logits", attn_logits}}) {
    check_adjacent(kOp, written);
  }
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
  run_decode(call, std::get<DecodeAttentionKernel*>(kernel.entry), shares, query);
  count_call(kOp, kernel.name);
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
  const std::vector<int64_t> prefixes = prefixes_of(kOp, totals, lengths, max_len_extend);
  const Slots slots = slots_of(kOp, req_to_token, pool, prefixes, k_buffer.size(0));
  const std::vector<ExtendSequence> sequences =
      extend_sequences(kOp, prefixes, lengths, firsts, slots, tokens);

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
  run_extend(call, std::get<ExtendAttentionKernel*>(kernel.entry),
             static_cast<int64_t>(units.size()), shares, q_extend);
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
