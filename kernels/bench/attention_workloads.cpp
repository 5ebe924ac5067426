// decode_attention, decode_attention_int8: heads, kv_heads, head, context (tokens attended to, the
// new one among them), splits. extend_attention, extend_attention_int8: heads, kv_heads, head,
// context, new. One sequence, one thread's division of the work, a cache [slots, kv_heads, head]
// reached through slots. An INT8 cache has dynamic scales, and its new rows are quantised and
// stored first.

#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <variant>
#include <vector>

#include "choice.h"
#include "operand.h"
#include "workloads.h"

namespace kernel_bench {
namespace {

using namespace sgl_rvv;

struct Shape {
  AttentionSizes sizes;
  int64_t context;
};

Shape shape_of(const Case& of) {
  const int64_t head = number(of, "head");
  const AttentionSizes sizes = {
      number(of, "heads"), number(of, "kv_heads"), head, head, 0.125F, 0.0F};
  if (sizes.heads % sizes.kv_heads != 0 || head % kHeadStep != 0 || head > kLargestHead) {
    throw std::invalid_argument(of.text + ": no kernel takes such heads");
  }
  return {sizes, number(of, "context")};
}

struct AlignedFloats {
  float* data;
  int64_t count;

  explicit AlignedFloats(int64_t floats)
      : data(static_cast<float*>(
            std::aligned_alloc(64, (static_cast<size_t>(floats) * sizeof(float) + 63) / 64 * 64))),
        count(floats) {
    if (data == nullptr) throw std::bad_alloc();
  }
  ~AlignedFloats() { std::free(data); }
  AlignedFloats(const AlignedFloats&) = delete;
  AlignedFloats& operator=(const AlignedFloats&) = delete;
};

struct AttentionOperands {
  std::vector<uint16_t> query, keys, values, out;
  std::vector<int64_t> slots;
  std::vector<float> partials;
  std::unique_ptr<AlignedFloats> scratch;
};

std::vector<int64_t> slots_of(int64_t context) {
  std::vector<int64_t> slots(static_cast<size_t>(context));
  for (int64_t token = 0; token < context; ++token) slots[static_cast<size_t>(token)] = token;
  return slots;
}

std::shared_ptr<AttentionOperands> operands_of(Type type, const Shape& shape, int64_t queries,
                                               int64_t scratch_floats) {
  const AttentionSizes& sizes = shape.sizes;
  auto operands = std::make_shared<AttentionOperands>();
  operands->query = operand(type, queries * sizes.heads * sizes.head);
  operands->keys = operand(type, shape.context * sizes.kv_heads * sizes.head);
  operands->values = operand(type, shape.context * sizes.kv_heads * sizes.head_v);
  operands->out.resize(static_cast<size_t>(queries * sizes.heads * sizes.head_v));
  operands->slots = slots_of(shape.context);
  operands->scratch = std::make_unique<AlignedFloats>(scratch_floats);
  return operands;
}

KvHeads heads_at(const std::vector<uint16_t>& rows, const AttentionSizes& sizes, int64_t head,
                 int64_t first_token) {
  const int64_t token_stride = sizes.kv_heads * head;
  return {rows.data() + first_token * token_stride, token_stride, head};
}

// The INT8 cache of a call, and the new rows that are stored in it before.
struct Int8Cache {
  std::vector<int8_t> codes;
  std::vector<float> scales;
  std::vector<uint16_t> rows;
  std::vector<float> largest;
};

Int8Cache int8_cache_of(Type type, const AttentionSizes& sizes, int64_t context, int64_t tokens,
                        int64_t head) {
  Int8Cache cache;
  cache.codes.resize(static_cast<size_t>(context * sizes.kv_heads * head));
  for (size_t i = 0; i < cache.codes.size(); ++i)
    cache.codes[i] = static_cast<int8_t>(i * 37 % 251);
  cache.scales.resize(static_cast<size_t>(context * sizes.kv_heads), 0.01F);
  cache.rows = operand(type, tokens * sizes.kv_heads * head);
  cache.largest.resize(static_cast<size_t>(tokens * sizes.kv_heads));
  return cache;
}

Int8Heads heads_of(const Int8Cache& cache, const AttentionSizes& sizes, int64_t head) {
  return {{cache.codes.data(), sizes.kv_heads * head, head},
          cache.scales.data(),
          sizes.kv_heads,
          1,
          0.0F};
}

// Stores rows of tokens whose slots are `slots`.
void store(const Kernel& kernel, Int8Cache& cache, const AttentionSizes& sizes, int64_t head,
           const std::vector<int64_t>& slots, int64_t first) {
  const StoreKv call = {static_cast<int64_t>(slots.size()) - first,
                        sizes.kv_heads,
                        head,
                        {cache.rows.data(), sizes.kv_heads * head, head},
                        slots.data() + first,
                        cache.codes.data(),
                        sizes.kv_heads * head,
                        head,
                        cache.scales.data(),
                        sizes.kv_heads,
                        1,
                        0.0F,
                        cache.largest.data()};
  StoreKvKernel* entry = std::get<StoreKvKernel*>(kernel.entry);
  entry(call, StoreStage::kMeasure, 0, sizes.kv_heads);
  entry(call, StoreStage::kStore, 0, sizes.kv_heads);
}

struct Int8Operands {
  std::vector<uint16_t> query, out;
  Int8Cache keys, values;
  std::vector<int64_t> slots;
  std::vector<float> partials;
  std::unique_ptr<AlignedFloats> scratch;
};

std::shared_ptr<Int8Operands> int8_operands_of(Type type, const Shape& shape, int64_t queries,
                                               int64_t scratch_floats) {
  const AttentionSizes& sizes = shape.sizes;
  auto operands = std::make_shared<Int8Operands>();
  operands->query = operand(type, queries * sizes.heads * sizes.head);
  operands->out.resize(static_cast<size_t>(queries * sizes.heads * sizes.head_v));
  operands->keys = int8_cache_of(type, sizes, shape.context, queries, sizes.head);
  operands->values = int8_cache_of(type, sizes, shape.context, queries, sizes.head_v);
  operands->slots = slots_of(shape.context);
  operands->scratch = std::make_unique<AlignedFloats>(scratch_floats);
  return operands;
}

}  // namespace

Workload decode_attention(const Case& of) {
  const Shape shape = shape_of(of);
  const AttentionSizes& sizes = shape.sizes;
  const Type type = type_of(of);
  const int64_t splits = number_or(of, "splits", 1);
  const Kernel* kernel = kernel_of(of, Operation::kDecodeAttention, type, 1);
  auto operands = operands_of(type, shape, 1,
                              decode_scratch_floats(sizes, splits, score_columns(cpu_features())));
  const int64_t width = sizes.head_v + 1;
  operands->partials.resize(static_cast<size_t>(sizes.heads * splits * width));
  return {kernel->name, sizes.heads * shape.context * (sizes.head + sizes.head_v), [=] {
            const int64_t begin[2] = {0, shape.context};
            const DecodeAttention call = {
                sizes,
                1,
                {operands->query.data(), sizes.heads * sizes.head, sizes.head},
                heads_at(operands->keys, sizes, sizes.head, 0),
                heads_at(operands->values, sizes, sizes.head_v, 0),
                operands->slots.data(),
                begin,
                operands->partials.data(),
                sizes.heads * splits * width,
                splits * width,
                width,
                splits,
                splits,
                {operands->out.data(), sizes.heads * sizes.head_v, sizes.head_v}};
            const Scratch scratch = {operands->scratch->data, operands->scratch->count};
            DecodeAttentionKernel* entry = std::get<DecodeAttentionKernel*>(kernel->entry);
            entry(call, DecodeStage::kAttend, 0, decode_units(call), scratch);
            entry(call, DecodeStage::kMerge, 0, merge_units(call), scratch);
          }};
}

Workload extend_attention(const Case& of) {
  const Shape shape = shape_of(of);
  const AttentionSizes& sizes = shape.sizes;
  const Type type = type_of(of);
  const int64_t tokens = number(of, "new");
  const int64_t prefix = shape.context - tokens;
  if (prefix < 0) throw std::invalid_argument(of.text + ": more new tokens than context");
  const Kernel* kernel = kernel_of(of, Operation::kExtendAttention, type, tokens);
  const ExtendSequence sized = {0, tokens, prefix, nullptr};
  int64_t largest = 0;
  const std::vector<ExtendUnit> units = extend_units(&sized, 1, sizes, 1, &largest);
  auto operands = operands_of(type, shape, tokens,
                              extend_scratch_floats(sizes, largest, score_columns(cpu_features())));
  const int64_t pairs = tokens * prefix + tokens * (tokens + 1) / 2;
  return {kernel->name, sizes.heads * pairs * (sizes.head + sizes.head_v), [=] {
            const ExtendSequence sequence = {0, tokens, prefix, operands->slots.data()};
            const ExtendAttention call = {
                sizes,
                &sequence,
                units.data(),
                largest,
                {operands->query.data(), sizes.heads * sizes.head, sizes.head},
                heads_at(operands->keys, sizes, sizes.head, prefix),
                heads_at(operands->values, sizes, sizes.head_v, prefix),
                heads_at(operands->keys, sizes, sizes.head, 0),
                heads_at(operands->values, sizes, sizes.head_v, 0),
                {operands->out.data(), sizes.heads * sizes.head_v, sizes.head_v}};
            const Scratch scratch = {operands->scratch->data, operands->scratch->count};
            ExtendAttentionKernel* entry = std::get<ExtendAttentionKernel*>(kernel->entry);
            entry(call, 0, static_cast<int64_t>(units.size()), scratch);
          }};
}

Workload decode_attention_int8(const Case& of) {
  const Shape shape = shape_of(of);
  const AttentionSizes& sizes = shape.sizes;
  const Type type = type_of(of);
  const int64_t splits = number_or(of, "splits", 1);
  const Kernel* kernel = kernel_of(of, Operation::kDecodeAttentionInt8, type, 1);
  const Kernel* storing = select_kernel(Operation::kStoreKv, type, 1, cpu_features());
  auto operands = int8_operands_of(
      type, shape, 1, decode_scratch_floats(sizes, splits, score_columns(cpu_features())));
  const int64_t width = sizes.head_v + 1;
  operands->partials.resize(static_cast<size_t>(sizes.heads * splits * width));
  return {kernel->name, sizes.heads * shape.context * (sizes.head + sizes.head_v), [=] {
            store(*storing, operands->keys, sizes, sizes.head, operands->slots, shape.context - 1);
            store(*storing, operands->values, sizes, sizes.head_v, operands->slots,
                  shape.context - 1);
            const int64_t begin[2] = {0, shape.context};
            const DecodeAttentionInt8 call = {
                sizes,
                1,
                {operands->query.data(), sizes.heads * sizes.head, sizes.head},
                heads_of(operands->keys, sizes, sizes.head),
                heads_of(operands->values, sizes, sizes.head_v),
                operands->slots.data(),
                begin,
                operands->partials.data(),
                sizes.heads * splits * width,
                splits * width,
                width,
                splits,
                splits,
                {operands->out.data(), sizes.heads * sizes.head_v, sizes.head_v}};
            const Scratch scratch = {operands->scratch->data, operands->scratch->count};
            DecodeAttentionInt8Kernel* entry = std::get<DecodeAttentionInt8Kernel*>(kernel->entry);
            entry(call, DecodeStage::kAttend, 0, decode_units(call), scratch);
            entry(call, DecodeStage::kMerge, 0, merge_units(call), scratch);
          }};
}

Workload extend_attention_int8(const Case& of) {
  const Shape shape = shape_of(of);
  const AttentionSizes& sizes = shape.sizes;
  const Type type = type_of(of);
  const int64_t tokens = number(of, "new");
  const int64_t prefix = shape.context - tokens;
  if (prefix < 0) throw std::invalid_argument(of.text + ": more new tokens than context");
  const Kernel* kernel = kernel_of(of, Operation::kExtendAttentionInt8, type, tokens);
  const Kernel* storing = select_kernel(Operation::kStoreKv, type, tokens, cpu_features());
  const ExtendSequence sized = {0, tokens, prefix, nullptr};
  int64_t largest = 0;
  const std::vector<ExtendUnit> units = extend_units(&sized, 1, sizes, 1, &largest);
  auto operands = int8_operands_of(
      type, shape, tokens, extend_scratch_floats(sizes, largest, score_columns(cpu_features())));
  const int64_t pairs = tokens * prefix + tokens * (tokens + 1) / 2;
  return {kernel->name, sizes.heads * pairs * (sizes.head + sizes.head_v), [=] {
            store(*storing, operands->keys, sizes, sizes.head, operands->slots, prefix);
            store(*storing, operands->values, sizes, sizes.head_v, operands->slots, prefix);
            const ExtendSequence sequence = {0, tokens, prefix, operands->slots.data()};
            const ExtendAttentionInt8 call = {
                sizes,
                &sequence,
                units.data(),
                largest,
                {operands->query.data(), sizes.heads * sizes.head, sizes.head},
                heads_of(operands->keys, sizes, sizes.head),
                heads_of(operands->values, sizes, sizes.head_v),
                {operands->out.data(), sizes.heads * sizes.head_v, sizes.head_v}};
            const Scratch scratch = {operands->scratch->data, operands->scratch->count};
            ExtendAttentionInt8Kernel* entry = std::get<ExtendAttentionInt8Kernel*>(kernel->entry);
            entry(call, 0, static_cast<int64_t>(units.size()), scratch);
          }};
}

}  // namespace kernel_bench
