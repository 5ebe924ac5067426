// torch.ops.sgl_kernel: attention over an INT8 KV cache. As attention_ops.cpp: everything that
// could be read or written out of range, and every scale, is checked before anything is written.
//
// Scales are static (k_scale and v_scale are given, one for all rows) or dynamic (both are NaN:
// each row of each KV head has its own, in k_scale_buf and v_scale_buf by slot). New rows that are
// floating are quantised (core/kv_store.h); new rows of int8 are copied, and must have a static
// scale.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <unordered_set>
#include <variant>
#include <vector>

#include "core/attention.h"
#include "core/kv_store.h"
#include "core/registry.h"
#include "torch/attention_operands.h"
#include "torch/attestation.h"
#include "torch/operands.h"
#include "torch/parallel.h"

namespace sgl_rvv {
namespace {

using at::Tensor;

// INT8 rows [count, heads, width]; negative sizes: any.
void check_cache(const char* op, const Named& of, int64_t count, int64_t heads, int64_t width) {
  check_cpu(op, of.name, of.tensor);
  TORCH_CHECK_TYPE(of.tensor.scalar_type() == at::kChar, op, ": ", of.name,
                   " must be int8, but is ", of.tensor.scalar_type());
  check_rows_shape(op, of, count, heads, width);
  check_adjacent(op, of);
}

// New keys or values: of the query's type, or INT8.
void check_new_rows(const char* op, const Named& of, const Tensor& query, int64_t count,
                    int64_t heads, int64_t width) {
  TORCH_CHECK_TYPE(
      of.tensor.scalar_type() == at::kChar || of.tensor.scalar_type() == query.scalar_type(), op,
      ": ", of.name, " must be int8 or of the query's type, ", query.scalar_type(), ", but is ",
      of.tensor.scalar_type());
  check_rows_shape(op, of, count, heads, width);
}

void check_scale_buf(const char* op, const Named& of, int64_t slots, int64_t kv_heads) {
  check_cpu(op, of.name, of.tensor);
  TORCH_CHECK_TYPE(of.tensor.scalar_type() == at::kFloat, op, ": ", of.name,
                   " must be float32, but is ", of.tensor.scalar_type());
  TORCH_CHECK_VALUE(
      of.tensor.dim() == 2 && of.tensor.size(0) == slots && of.tensor.size(1) == kv_heads, op, ": ",
      of.name, " must have shape [", slots, ", ", kv_heads, "], but has ", of.tensor.sizes());
}

float static_scale(const char* op, const char* name, double given) {
  const auto scale = static_cast<float>(given);
  // At least the smallest normal number: its inverse must be finite.
  TORCH_CHECK_VALUE(std::isfinite(scale) && scale >= std::numeric_limits<float>::min(), op, ": ",
                    name, " must be a positive finite float32, or NaN as well as the other scale, ",
                    "but is ", given);
  return scale;
}

// One of the two caches, and what is new for it.
struct Cache {
  Named rows;  // new ones
  Named codes;
  Named scales;       // buffer by slot
  const char* given;  // name of the static scale
  float scale;        // static; NaN: dynamic

  [[nodiscard]] bool dynamic() const { return std::isnan(scale); }
  [[nodiscard]] Int8Heads heads() const {
    const Tensor& cache = codes.tensor;
    return {{static_cast<const int8_t*>(cache.const_data_ptr()), cache.stride(0), cache.stride(1)},
            dynamic() ? scales.tensor.const_data_ptr<float>() : nullptr,
            scales.tensor.stride(0),
            scales.tensor.stride(1),
            scale};
  }
};

// Sets the scales of `keys` and `values` from the operator's arguments.
void set_scales(const char* op, Cache& keys, Cache& values, double k_scale, double v_scale) {
  if (std::isnan(k_scale) && std::isnan(v_scale)) {
    keys.scale = values.scale = std::numeric_limits<float>::quiet_NaN();
  } else {
    TORCH_CHECK_VALUE(!std::isnan(k_scale) && !std::isnan(v_scale), op,
                      ": k_scale and v_scale must both be given or both be NaN, but k_scale is ",
                      k_scale, " and v_scale is ", v_scale);
    keys.scale = static_scale(op, keys.given, k_scale);
    values.scale = static_scale(op, values.given, v_scale);
  }
  for (const Cache* cache : {&keys, &values}) {
    TORCH_CHECK_VALUE(cache->rows.tensor.scalar_type() != at::kChar || !cache->dynamic(), op, ": ",
                      cache->rows.name, " is int8, so its scale must be given: ", cache->given,
                      " must not be NaN");
  }
}

// New rows [first, first + count) and the slots that they go to.
struct NewRows {
  int64_t first;
  int64_t count;
  const int64_t* slots;
};

// What puts the new rows of one cache there. Threads touch data only, no tensors.
class RowStore {
 public:
  RowStore(const Cache& cache, const std::vector<NewRows>& parts, const Kernel& kernel)
      : cache_(cache),
        parts_(parts),
        rows_(with_adjacent(cache.rows.tensor)),
        largest_(at::empty({rows_.size(0) * rows_.size(1)},
                           cache.scales.tensor.options().dtype(at::kFloat))),
        entry_(std::get<StoreKvKernel*>(kernel.entry)),
        quantises_(rows_.scalar_type() != at::kChar) {
    const Tensor& to = cache.codes.tensor;
    const Tensor& scales = cache.scales.tensor;
    for (const NewRows& part : parts) {
      calls_.push_back({part.count,
                        rows_.size(1),
                        rows_.size(2),
                        {nullptr, rows_.stride(0), rows_.stride(1)},
                        part.slots,
                        static_cast<int8_t*>(to.mutable_data_ptr()),
                        to.stride(0),
                        to.stride(1),
                        cache.dynamic() ? scales.mutable_data_ptr<float>() : nullptr,
                        scales.stride(0),
                        scales.stride(1),
                        cache.scale,
                        largest_.mutable_data_ptr<float>() + part.first * rows_.size(1)});
      const int64_t offset = part.first * rows_.stride(0);
      if (quantises_) {
        calls_.back().rows.data = bits_of(rows_) + offset;
      } else {
        codes_.push_back(static_cast<const int8_t*>(rows_.const_data_ptr()) + offset);
      }
    }
  }

  [[nodiscard]] bool quantises() const { return quantises_; }

  void measure(int64_t begin, int64_t end) const {
    if (!quantises_) return;
    for (const StoreKv& call : calls_) entry_(call, StoreStage::kMeasure, begin, end);
  }

  // After measure() of all heads.
  void check_finite(const char* op) const {
    if (!quantises_) return;
    for (size_t part = 0; part < calls_.size(); ++part) {
      const StoreKv& call = calls_[part];
      for (int64_t head = 0; head < call.kv_heads; ++head) {
        for (int64_t i = 0; i < call.tokens; ++i) {
          TORCH_CHECK_VALUE(std::isfinite(call.largest[head * call.tokens + i]), op, ": ",
                            cache_.rows.name, "[", parts_[part].first + i, ", ", head,
                            "] has an element that is NaN or infinite");
        }
      }
    }
  }

  void store(int64_t begin, int64_t end) const {
    for (size_t part = 0; part < calls_.size(); ++part) {
      if (quantises_) {
        entry_(calls_[part], StoreStage::kStore, begin, end);
      } else {
        copy(calls_[part], codes_[part], begin, end);
      }
    }
  }

 private:
  // Rows that are codes already, at `from`.
  static void copy(const StoreKv& call, const int8_t* from, int64_t begin, int64_t end) {
    for (int64_t i = 0; i < call.tokens; ++i) {
      for (int64_t head = begin; head < end; ++head) {
        std::memcpy(
            call.codes + call.slots[i] * call.code_slot_stride + head * call.code_head_stride,
            from + i * call.rows.slot_stride + head * call.rows.head_stride,
            static_cast<size_t>(call.width));
      }
    }
  }

  const Cache& cache_;
  const std::vector<NewRows>& parts_;
  Tensor rows_;
  Tensor largest_;  // of a part [heads, count], at its first row times the heads
  StoreKvKernel* entry_;
  bool quantises_;
  std::vector<StoreKv> calls_;  // by part; where these rows are quantised, `rows` has their data
  std::vector<const int8_t*> codes_;  // else by part: their first row
};

// Every scale that will be read, but those that the new rows bring, is finite.
void check_scales(const char* op, const Cache& cache, const std::vector<int64_t>& read,
                  const std::vector<NewRows>& parts) {
  const Tensor& scales = cache.scales.tensor;
  const float* data = scales.const_data_ptr<float>();
  const int64_t heads = scales.size(1);
  const int64_t slot_stride = scales.stride(0);
  const int64_t head_stride = scales.stride(1);
  const auto at = [=](int64_t slot, int64_t head) {
    return data[slot * slot_stride + head * head_stride];
  };
  std::atomic<bool> finite{true};
  parallel_for(static_cast<int64_t>(read.size()), [&](int64_t begin, int64_t end) {
    float check = 0.0F;  // 0 times anything but a number is NaN
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t head = 0; head < heads; ++head) {
        check += 0.0F * at(read[static_cast<size_t>(i)], head);
      }
    }
    if (check != 0.0F) finite.store(false);
  });
  if (finite.load()) return;
  std::unordered_set<int64_t> written;
  for (const NewRows& part : parts) written.insert(part.slots, part.slots + part.count);
  for (const int64_t slot : read) {
    for (int64_t head = 0; head < heads && written.count(slot) == 0; ++head) {
      TORCH_CHECK_VALUE(std::isfinite(at(slot, head)), op, ": ", cache.scales.name, "[", slot, ", ",
                        head, "] is read, but is ", at(slot, head));
    }
  }
}

// Checks everything that has to do with scales, then puts the new rows into both caches. `read`:
// the slots of all tokens that are attended to.
void store_new_rows(const char* op, const Cache& keys, const Cache& values,
                    const std::vector<int64_t>& read, const std::vector<NewRows>& parts,
                    Type type) {
  const Kernel& kernel = chosen_kernel(Operation::kStoreKv, type, 1);
  const RowStore key_store(keys, parts, kernel);
  const RowStore value_store(values, parts, kernel);
  const int64_t kv_heads = keys.codes.tensor.size(1);
  parallel_for(kv_heads, [&](int64_t begin, int64_t end) {
    key_store.measure(begin, end);
    value_store.measure(begin, end);
  });
  key_store.check_finite(op);
  value_store.check_finite(op);
  for (const Cache* cache : {&keys, &values}) {
    if (cache->dynamic()) check_scales(op, *cache, read, parts);
  }
  // By KV head: two rows that go to the same slot are written by one thread, in their order.
  parallel_for(kv_heads, [&](int64_t begin, int64_t end) {
    key_store.store(begin, end);
    value_store.store(begin, end);
  });
  if (key_store.quantises() || value_store.quantises()) {
    count_call(name_of(Operation::kStoreKv), kernel.name);
  }
}

// None of the tensors that are written shares memory with another one.
void check_apart(const char* op, std::initializer_list<Named> written,
                 std::initializer_list<Named> only_read) {
  for (const Named* one = written.begin(); one != written.end(); ++one) {
    check_written(op, *one, only_read);
    for (const Named* other = one + 1; other != written.end(); ++other) {
      check_written(op, *one, {*other});
    }
  }
}

void decode_attention_int8_cpu(const Tensor& query, const Tensor& k_cache, const Tensor& v_cache,
                               const Tensor& output, const Tensor& key, const Tensor& value,
                               const Tensor& loc, const Tensor& attn_logits,
                               const Tensor& req_to_token, const Tensor& req_pool_indices,
                               const Tensor& seq_lens, double sm_scale, double logit_cap,
                               const Tensor& k_scale_buf, const Tensor& v_scale_buf, double k_scale,
                               double v_scale) {
  constexpr const char* kOp = "decode_attention_int8_cpu";
  RECORD_FUNCTION("sgl-kernel::decode_attention_int8_cpu", c10::ArrayRef<const c10::IValue>{});
  const Type type = check_rows(kOp, {"query", query}, query, -1, -1, -1);
  check_cache(kOp, {"k_cache", k_cache}, -1, -1, query.size(2));
  check_cache(kOp, {"v_cache", v_cache}, k_cache.size(0), k_cache.size(1), -1);
  const AttentionSizes sizes = sizes_of(kOp, query, k_cache, v_cache, sm_scale, logit_cap);
  const int64_t sequences = query.size(0);
  const int64_t slots_end = k_cache.size(0);
  check_rows(kOp, {"output", output}, query, sequences, sizes.heads, sizes.head_v);
  check_new_rows(kOp, {"key", key}, query, sequences, sizes.kv_heads, sizes.head);
  check_new_rows(kOp, {"value", value}, query, sequences, sizes.kv_heads, sizes.head_v);
  check_adjacent(kOp, {"output", output});
  check_logits(kOp, attn_logits, sequences, sizes);
  check_adjacent(kOp, {"attn_logits", attn_logits});
  check_scale_buf(kOp, {"k_scale_buf", k_scale_buf}, slots_end, sizes.kv_heads);
  check_scale_buf(kOp, {"v_scale_buf", v_scale_buf}, slots_end, sizes.kv_heads);
  check_apart(kOp,
              {{"output", output},
               {"k_cache", k_cache},
               {"v_cache", v_cache},
               {"attn_logits", attn_logits},
               {"k_scale_buf", k_scale_buf},
               {"v_scale_buf", v_scale_buf}},
              {{"query", query}, {"key", key}, {"value", value}});
  Cache keys = {{"key", key}, {"k_cache", k_cache}, {"k_scale_buf", k_scale_buf}, "k_scale", 0.0F};
  Cache values = {
      {"value", value}, {"v_cache", v_cache}, {"v_scale_buf", v_scale_buf}, "v_scale", 0.0F};
  set_scales(kOp, keys, values, k_scale, v_scale);
  check_req_to_token(kOp, req_to_token);
  const std::vector<int64_t> written = integers(kOp, {"loc", loc}, sequences, slots_end);
  const std::vector<int64_t> pool =
      integers(kOp, {"req_pool_indices", req_pool_indices}, sequences, req_to_token.size(0));
  const std::vector<int64_t> lengths =
      integers(kOp, {"seq_lens", seq_lens}, sequences, req_to_token.size(1) + 1);
  const Slots slots = slots_of(kOp, req_to_token, pool, lengths, slots_end);
  if (sequences == 0) return;

  store_new_rows(kOp, keys, values, slots.slots, {{0, sequences, written.data()}}, type);
  const Tensor queries = with_adjacent(query);
  const Kernel& kernel = chosen_kernel(Operation::kDecodeAttentionInt8, type, sizes.group());
  const int64_t shares = threads();
  const DecodeAttentionInt8 call = {sizes,
                                    sequences,
                                    queries_of(queries),
                                    keys.heads(),
                                    values.heads(),
                                    slots.slots.data(),
                                    slots.begins.data(),
                                    attn_logits.mutable_data_ptr<float>(),
                                    attn_logits.stride(0),
                                    attn_logits.stride(1),
                                    attn_logits.stride(2),
                                    decode_splits(sizes.kv_heads, shares, attn_logits.size(2)),
                                    attn_logits.size(2),
                                    outputs_of(output)};
  run_decode(call, std::get<DecodeAttentionInt8Kernel*>(kernel.entry), shares, query);
  count_call(kOp, kernel.name);
}

void extend_attention_int8_cpu(const Tensor& q_extend, const Tensor& k_extend,
                               const Tensor& v_extend, const Tensor& o_extend,
                               const Tensor& k_buffer, const Tensor& v_buffer,
                               const Tensor& req_to_token, const Tensor& req_pool_indices,
                               const Tensor& seq_lens, const Tensor& extend_seq_lens,
                               const Tensor& extend_start_loc, int64_t max_len_extend,
                               double sm_scale, double logit_cap, const Tensor& k_scale_buf,
                               const Tensor& v_scale_buf, double k_scale, double v_scale) {
  constexpr const char* kOp = "extend_attention_int8_cpu";
  RECORD_FUNCTION("sgl-kernel::extend_attention_int8_cpu", c10::ArrayRef<const c10::IValue>{});
  const Type type = check_rows(kOp, {"q_extend", q_extend}, q_extend, -1, -1, -1);
  const int64_t tokens = q_extend.size(0);
  check_cache(kOp, {"k_buffer", k_buffer}, -1, -1, q_extend.size(2));
  check_cache(kOp, {"v_buffer", v_buffer}, k_buffer.size(0), k_buffer.size(1), -1);
  const AttentionSizes sizes = sizes_of(kOp, q_extend, k_buffer, v_buffer, sm_scale, logit_cap);
  const int64_t slots_end = k_buffer.size(0);
  check_new_rows(kOp, {"k_extend", k_extend}, q_extend, tokens, sizes.kv_heads, sizes.head);
  check_new_rows(kOp, {"v_extend", v_extend}, q_extend, tokens, sizes.kv_heads, sizes.head_v);
  check_rows(kOp, {"o_extend", o_extend}, q_extend, tokens, sizes.heads, sizes.head_v);
  check_adjacent(kOp, {"o_extend", o_extend});
  check_scale_buf(kOp, {"k_scale_buf", k_scale_buf}, slots_end, sizes.kv_heads);
  check_scale_buf(kOp, {"v_scale_buf", v_scale_buf}, slots_end, sizes.kv_heads);
  check_apart(kOp,
              {{"o_extend", o_extend},
               {"k_buffer", k_buffer},
               {"v_buffer", v_buffer},
               {"k_scale_buf", k_scale_buf},
               {"v_scale_buf", v_scale_buf}},
              {{"q_extend", q_extend}, {"k_extend", k_extend}, {"v_extend", v_extend}});
  Cache keys = {{"k_extend", k_extend},
                {"k_buffer", k_buffer},
                {"k_scale_buf", k_scale_buf},
                "k_scale",
                0.0F};
  Cache values = {{"v_extend", v_extend},
                  {"v_buffer", v_buffer},
                  {"v_scale_buf", v_scale_buf},
                  "v_scale",
                  0.0F};
  set_scales(kOp, keys, values, k_scale, v_scale);
  check_req_to_token(kOp, req_to_token);
  TORCH_CHECK_VALUE(seq_lens.dim() == 1, kOp, ": seq_lens must have 1 dimension, but has shape ",
                    seq_lens.sizes());
  const int64_t count = seq_lens.size(0);
  const std::vector<int64_t> pool =
      integers(kOp, {"req_pool_indices", req_pool_indices}, count, req_to_token.size(0));
  const std::vector<int64_t> totals =
      integers(kOp, {"seq_lens", seq_lens}, count, req_to_token.size(1) + 1);
  const std::vector<int64_t> lengths =
      integers(kOp, {"extend_seq_lens", extend_seq_lens}, count, tokens + 1);
  const std::vector<int64_t> firsts =
      integers(kOp, {"extend_start_loc", extend_start_loc}, count, tokens + 1);
  const std::vector<int64_t> prefixes = prefixes_of(kOp, totals, lengths, max_len_extend);
  // The new tokens' slots too: that is where their keys and values go, and are read.
  const Slots slots = slots_of(kOp, req_to_token, pool, totals, slots_end);
  const std::vector<ExtendSequence> sequences =
      extend_sequences(kOp, prefixes, lengths, firsts, slots, tokens);

  const int64_t shares = threads();
  int64_t largest_unit = 0;
  const std::vector<ExtendUnit> units = extend_units(
      sequences.data(), static_cast<int64_t>(sequences.size()), sizes, shares, &largest_unit);
  if (units.empty()) return;
  std::vector<NewRows> parts;
  for (const ExtendSequence& one : sequences) {
    parts.push_back({one.first, one.tokens, one.slots + one.prefix});
  }
  store_new_rows(kOp, keys, values, slots.slots, parts, type);
  const Kernel& kernel = chosen_kernel(Operation::kExtendAttentionInt8, type, sizes.group());
  const Tensor queries = with_adjacent(q_extend);
  const ExtendAttentionInt8 call = {sizes,          sequences.data(),    units.data(),
                                    largest_unit,   queries_of(queries), keys.heads(),
                                    values.heads(), outputs_of(o_extend)};
  run_extend(call, std::get<ExtendAttentionInt8Kernel*>(kernel.entry),
             static_cast<int64_t>(units.size()), shares, q_extend);
  count_call(kOp, kernel.name);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sgl_kernel, m) {
  m.def(
      "decode_attention_int8_cpu(Tensor query, Tensor(a!) k_cache, Tensor(b!) v_cache, "
      "Tensor(c!) output, Tensor key, Tensor value, Tensor loc, Tensor(d!) attn_logits, "
      "Tensor req_to_token, Tensor req_pool_indices, Tensor seq_lens, float sm_scale, "
      "float logit_cap, Tensor(e!) k_scale_buf, Tensor(f!) v_scale_buf, float k_scale, "
      "float v_scale) -> ()");
  m.def(
      "extend_attention_int8_cpu(Tensor q_extend, Tensor k_extend, Tensor v_extend, "
      "Tensor(a!) o_extend, Tensor(b!) k_buffer, Tensor(c!) v_buffer, Tensor req_to_token, "
      "Tensor req_pool_indices, Tensor seq_lens, Tensor extend_seq_lens, "
      "Tensor extend_start_loc, int max_len_extend, float sm_scale, float logit_cap, "
      "Tensor(d!) k_scale_buf, Tensor(e!) v_scale_buf, float k_scale, float v_scale) -> ()");
}

TORCH_LIBRARY_IMPL(sgl_kernel, CPU, m) {
  m.impl("decode_attention_int8_cpu", &decode_attention_int8_cpu);
  m.impl("extend_attention_int8_cpu", &extend_attention_int8_cpu);
}

}  // namespace sgl_rvv
