// Attention over an INT8 cache, every kernel of the registry against float64 on the dequantised
// cache. The bound is that of attention_tests.cpp with the roundings that scales add: one to each
// score (of the key, or of the sum) and one to each weight or value; codes become FP32 exactly.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <limits>
#include <string>
#include <vector>

#include "core/attention.h"
#include "harness.h"

namespace sgl_rvv::tests {

void test_int8_attention();

namespace {

constexpr double kU = 0x1p-24;

struct Shape {
  int64_t heads, kv_heads, head, head_v;
};

// Codes [slots][kv_heads][width] with `pad` behind every head's row and every slot's, and scales
// [slots][kv_heads] with one float behind every slot's. What no token has is NaN.
struct Codes {
  int64_t slots, kv_heads, width, pad;
  std::vector<int8_t> codes;
  std::vector<float> scales;
  float scale = 0.0F;  // where it is not 0, of all rows, and scales are not given

  Codes(int64_t slots_, int64_t kv_heads_, int64_t width_, int64_t pad_)
      : slots(slots_),
        kv_heads(kv_heads_),
        width(width_),
        pad(pad_),
        codes(static_cast<size_t>(slots_ * slot_stride()), 77),
        scales(static_cast<size_t>(slots_ * (kv_heads_ + 1)), std::nanf("")) {}

  [[nodiscard]] int64_t head_stride() const { return width + pad; }
  [[nodiscard]] int64_t slot_stride() const { return kv_heads * head_stride() + pad; }
  [[nodiscard]] int64_t at(int64_t slot, int64_t head) const {
    return slot * slot_stride() + head * head_stride();
  }
  [[nodiscard]] float& scale_of(int64_t slot, int64_t head) {
    return scales[static_cast<size_t>(slot * (kv_heads + 1) + head)];
  }
  [[nodiscard]] double value(int64_t slot, int64_t head, int64_t i) const {
    const float by =
        scale != 0.0F ? scale : scales[static_cast<size_t>(slot * (kv_heads + 1) + head)];
    return static_cast<double>(by) * codes[static_cast<size_t>(at(slot, head) + i)];
  }
  void randomise(Random& random, int64_t slot) {
    for (int64_t head = 0; head < kv_heads; ++head) {
      for (int64_t i = 0; i < width; ++i) {
        codes[static_cast<size_t>(at(slot, head) + i)] =
            static_cast<int8_t>(random.below(256) - 128);
      }
      scale_of(slot, head) = static_cast<float>(std::ldexp(1.0 + random.unit(), -9));
    }
  }
  [[nodiscard]] Int8Heads heads(const int8_t* data, const float* of) const {
    return {
        {data, slot_stride(), head_stride()}, scale != 0.0F ? nullptr : of, kv_heads + 1, 1, scale};
  }
};

struct Problem {
  const Format& format;
  Shape shape;
  std::vector<int64_t> prefixes;  // of tokens before the new ones
  std::vector<int64_t> lengths;   // new ones
  int64_t pad;
  double scale, cap;
  int64_t tokens = 0;  // new ones of all sequences
  std::vector<uint16_t> query;
  std::vector<int64_t> slots;  // of all sequences: prefix, then new
  std::vector<int64_t> begins{0};
  Codes keys, values;

  Problem(const Format& format_, Shape shape_, std::vector<int64_t> prefixes_,
          std::vector<int64_t> lengths_, int64_t pad_, double cap_, bool dynamic, uint64_t seed)
      : format(format_),
        shape(shape_),
        prefixes(std::move(prefixes_)),
        lengths(std::move(lengths_)),
        pad(pad_),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape_.head)))),
        cap(cap_),
        keys(0, shape_.kv_heads, shape_.head, pad_),
        values(0, shape_.kv_heads, shape_.head_v, pad_) {
    Random random(seed);
    for (size_t i = 0; i < lengths.size(); ++i) {
      tokens += lengths[i];
      begins.push_back(begins.back() + prefixes[i] + lengths[i]);
    }
    const int64_t count = begins.back() + 5;
    keys = Codes(count, shape.kv_heads, shape.head, pad);
    values = Codes(count, shape.kv_heads, shape.head_v, pad);
    for (int64_t i = 0; i < count; ++i) slots.push_back(i);
    for (int64_t i = count - 1; i > 0; --i) {
      std::swap(slots[static_cast<size_t>(i)], slots[static_cast<size_t>(random.below(i + 1))]);
    }
    slots.resize(static_cast<size_t>(begins.back()));
    for (const int64_t slot : slots) {
      keys.randomise(random, slot);
      values.randomise(random, slot);
    }
    if (!dynamic) {
      keys.scale = 0.011F;
      values.scale = 0.017F;
    }
    for (int64_t i = 0; i < tokens * shape.heads * shape.head; ++i) {
      query.push_back(format.round(random.value()));
    }
  }

  [[nodiscard]] AttentionSizes sizes() const {
    return {shape.heads,
            shape.kv_heads,
            shape.head,
            shape.head_v,
            static_cast<float>(scale),
            static_cast<float>(cap)};
  }
  [[nodiscard]] std::string text() const {
    std::string all = "heads=" + std::to_string(shape.heads) + "/" +
                      std::to_string(shape.kv_heads) + " head=" + std::to_string(shape.head) + "/" +
                      std::to_string(shape.head_v) + " pad=" + std::to_string(pad) +
                      " cap=" + std::to_string(cap) + (keys.scale != 0.0F ? " static" : " dynamic");
    for (size_t i = 0; i < lengths.size(); ++i) {
      all += " " + std::to_string(prefixes[i]) + "+" + std::to_string(lengths[i]);
    }
    return all;
  }
};

struct Bounds {
  double least, most;
};

// Of the output of one query of head `head` (the head of new token `token`) over the `seen` slots.
std::vector<Bounds> reference(const Problem& problem, int64_t token, int64_t head,
                              const int64_t* seen, int64_t count) {
  const Shape& shape = problem.shape;
  const int64_t kv_head = head / (shape.heads / shape.kv_heads);
  const uint16_t* query = problem.query.data() + (token * shape.heads + head) * shape.head;
  const auto tokens = static_cast<size_t>(count);
  const double blocks = static_cast<double>(count) / 16.0 + 10.0;
  std::vector<double> exact(static_cast<size_t>(shape.head_v), 0.0);
  std::vector<double> error(exact.size(), 0.0), magnitude(exact.size(), 0.0);
  std::vector<double> scores(tokens), slack(tokens);
  double highest = -HUGE_VAL, lowest = HUGE_VAL;
  for (size_t t = 0; t < tokens; ++t) {
    double sum = 0.0, sizes = 0.0;
    for (int64_t i = 0; i < shape.head; ++i) {
      const double product =
          problem.format.value(query[i]) * problem.keys.value(seen[t], kv_head, i);
      sum += product;
      sizes += std::fabs(product);
    }
    scores[t] = problem.scale * sum;
    slack[t] = gamma(shape.head + 3) * problem.scale * sizes;
    if (problem.cap > 0.0) {
      scores[t] = problem.cap * std::tanh(scores[t] / problem.cap);
      slack[t] += 8.0 * kU * problem.cap;
    }
    highest = std::max(highest, scores[t]);
    lowest = std::min(lowest, scores[t]);
  }
  if (count > 0) {
    const double largest = std::max(std::fabs(highest), std::fabs(lowest));
    const double common = kU * (highest - lowest) + 6.0 * kU * (blocks + 2.0) +
                          4.0 * kU * (largest + std::log(static_cast<double>(count)));
    double total = 0.0, total_slack = 0.0;
    for (size_t t = 0; t < tokens; ++t) {
      const double weight = std::exp(scores[t] - highest);
      const double d = slack[t] + 2.0 * kU * (highest - scores[t]) + common;
      expect(d < 0.01, "the bound does not hold for such scores");
      total += weight;
      total_slack += weight * d;
      for (int64_t i = 0; i < shape.head_v; ++i) {
        const auto at = static_cast<size_t>(i);
        const double term = weight * problem.values.value(seen[t], kv_head, i);
        exact[at] += term;
        magnitude[at] += std::fabs(term);
        error[at] += std::fabs(term) * d;
      }
    }
    const double order = gamma(2 * static_cast<int64_t>(static_cast<double>(count) + blocks) + 9);
    for (size_t i = 0; i < exact.size(); ++i) {
      exact[i] /= total;
      error[i] = 1.01 * (error[i] + total_slack / total * magnitude[i]) / total +
                 order * magnitude[i] / total;
    }
  }
  std::vector<Bounds> bounds;
  for (size_t i = 0; i < exact.size(); ++i) {
    bounds.push_back({exact[i] - error[i], exact[i] + error[i]});
  }
  return bounds;
}

void check(const Problem& problem, const std::string& what, const std::vector<Bounds>& bounds,
           const uint16_t* got) {
  const Format& format = problem.format;
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (format.is_nan(got[i]) ||
        format.order(got[i]) < format.order(format.round(bounds[i].least)) ||
        format.order(got[i]) > format.order(format.round(bounds[i].most))) {
      fail(what + " [" + std::to_string(i) + "]: got " + std::to_string(format.value(got[i])));
      return;
    }
  }
}

// Memory of a call that may not be touched behind its end.
struct Operands {
  Fenced<uint16_t> query;
  Fenced<int8_t> keys, values;
  Fenced<float> key_scales, value_scales;
  Fenced<int64_t> slots;
  Fenced<uint16_t> output;

  explicit Operands(const Problem& problem)
      : query(problem.query),
        keys(problem.keys.codes),
        values(problem.values.codes),
        key_scales(problem.keys.scales),
        value_scales(problem.values.scales),
        slots(problem.slots),
        output(std::vector<uint16_t>(
            static_cast<size_t>(problem.tokens * problem.shape.heads * problem.shape.head_v),
            problem.format.nan)) {}

  [[nodiscard]] QueryRows queries(const Shape& shape) const {
    return {query.data(), shape.heads * shape.head, shape.head};
  }
  [[nodiscard]] OutputRows outputs(const Shape& shape) const {
    return {output.data(), shape.heads * shape.head_v, shape.head_v};
  }
  [[nodiscard]] std::vector<uint16_t> result(const Problem& problem) const {
    return {output.data(),
            output.data() + problem.tokens * problem.shape.heads * problem.shape.head_v};
  }
};

// Sequences have one new token each.
std::vector<uint16_t> decode(const Kernel& kernel, const Problem& problem, int64_t splits) {
  run_case(kernel, problem.text());
  const Shape& shape = problem.shape;
  const Operands operands(problem);
  const int64_t max_splits = splits + 1;
  const int64_t width = shape.head_v + 1;
  const Fenced<float> partials(std::vector<float>(
      static_cast<size_t>(problem.tokens * shape.heads * max_splits * width), std::nanf("")));
  const AttentionSizes sizes = problem.sizes();
  const DecodeAttentionInt8 call = {
      sizes,
      problem.tokens,
      operands.queries(shape),
      problem.keys.heads(operands.keys.data(), operands.key_scales.data()),
      problem.values.heads(operands.values.data(), operands.value_scales.data()),
      operands.slots.data(),
      problem.begins.data(),
      partials.data(),
      shape.heads * max_splits * width,
      max_splits * width,
      width,
      splits,
      max_splits,
      operands.outputs(shape)};
  const int64_t floats = decode_scratch_floats(sizes, splits, score_columns(cpu_features()));
  const Fenced<float> memory(static_cast<size_t>(floats));
  auto* entry = std::get<DecodeAttentionInt8Kernel*>(kernel.entry);
  for (int64_t unit = decode_units(call); unit-- > 0;) {
    entry(call, DecodeStage::kAttend, unit, unit + 1, {memory.data(), floats});
  }
  entry(call, DecodeStage::kMerge, 0, merge_units(call), {memory.data(), floats});
  expect(operands.output.intact() && partials.intact() && memory.intact(),
         std::string(kernel.name) + " " + problem.text() + ": wrote out of range");
  return operands.result(problem);
}

std::vector<uint16_t> extend(const Kernel& kernel, const Problem& problem, int64_t threads) {
  run_case(kernel, problem.text());
  const Operands operands(problem);
  const AttentionSizes sizes = problem.sizes();
  std::vector<ExtendSequence> sequences;
  int64_t first = 0;
  for (size_t i = 0; i < problem.lengths.size(); ++i) {
    sequences.push_back({first, problem.lengths[i], problem.prefixes[i],
                         operands.slots.data() + problem.begins[i]});
    first += problem.lengths[i];
  }
  int64_t largest = 0;
  const std::vector<ExtendUnit> units = extend_units(
      sequences.data(), static_cast<int64_t>(sequences.size()), sizes, threads, &largest);
  const ExtendAttentionInt8 call = {
      sizes,
      sequences.data(),
      units.data(),
      largest,
      operands.queries(problem.shape),
      problem.keys.heads(operands.keys.data(), operands.key_scales.data()),
      problem.values.heads(operands.values.data(), operands.value_scales.data()),
      operands.outputs(problem.shape)};
  const int64_t floats = extend_scratch_floats(sizes, largest, score_columns(cpu_features()));
  const Fenced<float> memory(static_cast<size_t>(floats));
  auto* entry = std::get<ExtendAttentionInt8Kernel*>(kernel.entry);
  for (auto unit = static_cast<int64_t>(units.size()); unit-- > 0;) {
    entry(call, unit, unit + 1, {memory.data(), floats});
  }
  expect(operands.output.intact() && memory.intact(),
         std::string(kernel.name) + " " + problem.text() + ": wrote out of range");
  return operands.result(problem);
}

// References of a long problem are computed for an evenly spread choice of its queries.
constexpr int64_t kReferenceQueries = 60;

void hold(const Problem& problem, const std::vector<const Kernel*>& tested,
          const std::vector<std::vector<uint16_t>>& results) {
  const Shape& shape = problem.shape;
  const int64_t step = std::max<int64_t>(1, problem.tokens * shape.heads / kReferenceQueries) | 1;
  int64_t token = 0;
  for (size_t sequence = 0; sequence < problem.lengths.size(); ++sequence) {
    for (int64_t position = 0; position < problem.lengths[sequence]; ++position, ++token) {
      for (int64_t head = 0; head < shape.heads; ++head) {
        if ((token * shape.heads + head) % step != 0) continue;
        const std::vector<Bounds> bounds =
            reference(problem, token, head, problem.slots.data() + problem.begins[sequence],
                      problem.prefixes[sequence] + position + 1);
        for (size_t k = 0; k < tested.size(); ++k) {
          check(problem,
                std::string(tested[k]->name) + " " + problem.text() + " token " +
                    std::to_string(token) + " head " + std::to_string(head),
                bounds, results[k].data() + (token * shape.heads + head) * shape.head_v);
        }
      }
    }
  }
}

void test_decode(const Problem& problem, int64_t splits) {
  const std::vector<const Kernel*> tested =
      runnable(Operation::kDecodeAttentionInt8, problem.format.type);
  if (tested.empty()) return;
  std::vector<std::vector<uint16_t>> results;
  for (const Kernel* kernel : tested) results.push_back(decode(*kernel, problem, splits));
  hold(problem, tested, results);
}

void test_extend(const Problem& problem, int64_t threads) {
  const std::vector<const Kernel*> tested =
      runnable(Operation::kExtendAttentionInt8, problem.format.type);
  if (tested.empty()) return;
  std::vector<std::vector<uint16_t>> results;
  for (const Kernel* kernel : tested) results.push_back(extend(*kernel, problem, threads));
  hold(problem, tested, results);
}

constexpr Shape kShapes[] = {{4, 4, 64, 64},    {8, 2, 64, 64},   {8, 1, 128, 128}, {6, 2, 80, 80},
                             {5, 1, 96, 96},    {14, 2, 112, 64}, {6, 1, 64, 128},  {9, 1, 256, 72},
                             {12, 2, 128, 112}, {2, 2, 8, 16},    {4, 2, 128, 128}};

void test_shapes(const Format& format) {
  uint64_t seed = 1;
  for (const Shape& shape : kShapes) {
    const auto pad = static_cast<int64_t>(seed % 3);  // 0, 1 and 2: rows at any multiple of a byte
    const double cap = seed % 4 == 0 ? 3.0 : 0.0;
    const bool dynamic = seed % 2 == 0;
    const auto parts = static_cast<int64_t>(1 + seed % 3);
    test_decode({format,
                 shape,
                 {0, 1, 2, 3, 30, 31, 32, 99, 16},
                 {1, 1, 1, 1, 1, 1, 1, 1, 1},
                 pad,
                 cap,
                 dynamic,
                 seed},
                parts);
    test_extend({format, shape, {0, 33, 0, 5}, {7, 3, 40, 1}, pad, cap, dynamic, seed}, parts);
    ++seed;
  }
  const Shape gqa = {4, 1, 64, 64};
  for (const bool dynamic : {false, true}) {
    test_decode({format, gqa, {511, 0}, {1, 1}, 0, 0.0, dynamic, 100}, 1);
    test_decode({format, gqa, {511}, {1}, 4, 50.0, dynamic, 101}, 5);
    test_decode({format, {1, 1, 128, 128}, {2047}, {1}, 0, 0.0, dynamic, 103}, 1);
    test_extend({format, gqa, {0}, {160}, 0, 0.0, dynamic, 104}, 1);
    test_extend({format, gqa, {512}, {33}, 4, 0.0, dynamic, 105}, 8);
  }
}

// A scale of a row reaches its own scores and weights and nothing else: a row of scale 0 (which no
// quantisation gives, and which is finite) is a key with the score 0 and a value of zeros.
void test_scale_of_one_row(const Format& format) {
  const Shape shape = {4, 2, 64, 64};
  for (const int64_t token : {0, 17, 69}) {
    Problem problem(format, shape, {69}, {1}, 0, 0.0, true, 7);
    const int64_t slot = problem.slots[static_cast<size_t>(token)];
    problem.keys.scale_of(slot, 1) = 0.0F;
    problem.values.scale_of(slot, 0) = 0.0F;
    test_decode(problem, 2);
    test_extend(problem, 1);
  }
}

// A query's result does not depend on what else is in the call.
void test_batch_invariance(const Format& format) {
  const Shape shape = {8, 2, 64, 64};
  for (const Kernel* kernel : runnable(Operation::kDecodeAttentionInt8, format.type)) {
    const Problem both(format, shape, {99, 36}, {1, 1}, 0, 0.0, true, 11);
    Problem alone = both;
    alone.prefixes = {99};
    alone.lengths = {1};
    alone.begins = {0, 100};
    alone.tokens = 1;
    const std::vector<uint16_t> pair = decode(*kernel, both, 3);
    const std::vector<uint16_t> single = decode(*kernel, alone, 3);
    expect(std::equal(single.begin(), single.begin() + 8 * 64, pair.begin()),
           std::string(kernel->name) + ": a result depends on the rest of the batch");
  }
}

// Whether `call` calls abort(); in a process of its own, whose handler leaves no core.
template <class Call>
bool aborts(Call&& call) {
  constexpr int kAborted = 77;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, [](int) { _exit(kAborted); });
    call();
    _exit(0);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == kAborted;
}

// One number too few ends the process before anything is computed.
void test_scratch_is_checked(const Format& format) {
  const AttentionSizes sizes = {4, 2, 64, 64, 1.0F, 0.0F};
  const auto columns = [](const Kernel& kernel) {
    return (kernel.needs & kRvv) != 0 ? cpu_features().vlen_bits / 8 : int64_t{32};
  };
  for (const Kernel* kernel : runnable(Operation::kDecodeAttentionInt8, format.type)) {
    DecodeAttentionInt8 call{};
    call.sizes = sizes;
    call.splits = 1;
    const int64_t floats = decode_scratch_floats(sizes, call.splits, columns(*kernel));
    auto* entry = std::get<DecodeAttentionInt8Kernel*>(kernel->entry);
    expect(aborts([&] { entry(call, DecodeStage::kAttend, 0, 0, {nullptr, floats - 1}); }),
           std::string(kernel->name) + ": scratch is not checked");
  }
  for (const Kernel* kernel : runnable(Operation::kExtendAttentionInt8, format.type)) {
    ExtendAttentionInt8 call{};
    call.sizes = sizes;
    call.largest_unit = 3;
    const int64_t floats = extend_scratch_floats(sizes, call.largest_unit, columns(*kernel));
    auto* entry = std::get<ExtendAttentionInt8Kernel*>(kernel->entry);
    expect(aborts([&] { entry(call, 0, 0, {nullptr, floats - 1}); }),
           std::string(kernel->name) + ": scratch is not checked");
  }
}

}  // namespace

void test_int8_attention() {
  for (const Format* format : {&kBf16Format, &kFp16Format}) {
    test_shapes(*format);
    test_scale_of_one_row(*format);
    test_batch_invariance(*format);
    test_scratch_is_checked(*format);
    const std::string type = name_of(format->type);
    for (const Operation operation :
         {Operation::kDecodeAttentionInt8, Operation::kExtendAttentionInt8}) {
      note_dispatch(name_of(operation), type,
                    select_kernel(operation, format->type, 1, cpu_features()));
    }
  }
}

}  // namespace sgl_rvv::tests
