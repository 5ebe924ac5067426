// Every attention kernel of the registry against float64, and the exponential that they share.
//
// The bound. With u = 2^-24 and gamma(n) of harness.h, for one query over the tokens t that it
// sees:
//   score      s_t: head + 2 roundings of a sum of products, the query scaled before:
//              |ds_t| <= gamma(head + 2) * scale * sum |q_i k_ti|; a cap adds at most 8 u cap
//   weight     p_t = exp(s_t - m): the difference is rounded (u |s_t - m|), the exponential is
//              within 2 ulp (4 u); each new block multiplies by exp(m_old - m_new), whose
//              differences add up to less than the spread of the scores: (6 u) a block and u spread
//   merging    a split's logarithm is rounded, added to its maximum and subtracted from the
//              highest: 4 u (|m| + log(tokens)) and another exponential
// so that the relative error of p_t is at most
//   d_t = |ds_t| + u (2 |s_t - m| + spread) + 6 u (blocks + 2) + 4 u (max |s| + log(tokens)).
// The output sum w_t v_t, w = p / sum p, then is off by at most
//   e = 1.01 (sum w_t d_t |v_t| + (sum w_t d_t) (sum w_t |v_t|))
//       + gamma(2 (tokens + blocks) + 8) * sum w_t |v_t|
// (1.01 for products of errors, with d_t below 0.01, which is checked). Rounding is monotonic: the
// result lies between round(exact - e) and round(exact + e).

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/attention.h"
#include "core/attention_kernels.h"
#include "harness.h"

namespace sgl_rvv::tests {

void test_attention();

namespace {

constexpr double kU = 0x1p-24;

struct Shape {
  int64_t heads, kv_heads, head, head_v;
};

std::string describe(const Shape& shape) {
  return "heads=" + std::to_string(shape.heads) + "/" + std::to_string(shape.kv_heads) +
         " head=" + std::to_string(shape.head) + "/" + std::to_string(shape.head_v);
}

// 16-bit rows [count][heads][width], `pad` elements behind every head's row and `pad` more behind
// every count's. What no row covers is NaN, and so is every row until it is set.
struct Rows {
  int64_t count, heads, width, pad;
  std::vector<uint16_t> bits;

  Rows(const Format& format, int64_t count_, int64_t heads_, int64_t width_, int64_t pad_)
      : count(count_),
        heads(heads_),
        width(width_),
        pad(pad_),
        bits(static_cast<size_t>(count_ * stride()), format.nan) {}

  [[nodiscard]] int64_t head_stride() const { return width + pad; }
  [[nodiscard]] int64_t stride() const { return heads * head_stride() + pad; }
  [[nodiscard]] int64_t at(int64_t index, int64_t head) const {
    return index * stride() + head * head_stride();
  }
  void randomise(const Format& format, Random& random, int64_t index) {
    for (int64_t head = 0; head < heads; ++head) {
      for (int64_t i = 0; i < width; ++i) {
        bits[static_cast<size_t>(at(index, head) + i)] = format.round(random.value());
      }
    }
  }
};

// What one query sees: rows of keys and of values.
struct Seen {
  std::vector<const uint16_t*> keys;
  std::vector<const uint16_t*> values;
};

struct Interval {
  int lowest, highest;  // in Format::order()
};

// The bounds of one query's output; see the head of the file. `blocks`: an upper bound of the
// blocks and splits that any kernel uses.
std::vector<Interval> reference(const Format& format, const Shape& shape, const uint16_t* query,
                                const Seen& seen, double scale, double cap) {
  const size_t tokens = seen.keys.size();
  const double blocks = static_cast<double>(tokens) / 16.0 + 10.0;
  std::vector<double> exact(static_cast<size_t>(shape.head_v), 0.0);
  std::vector<double> error(exact.size(), 0.0);
  if (tokens > 0) {
    std::vector<double> scores(tokens), slack(tokens);
    std::vector<double> q(static_cast<size_t>(shape.head));
    for (size_t i = 0; i < q.size(); ++i) q[i] = format.value(query[i]);
    double highest = -HUGE_VAL;
    double lowest = HUGE_VAL;
    for (size_t t = 0; t < tokens; ++t) {
      double sum = 0.0;
      double magnitude = 0.0;
      for (size_t i = 0; i < q.size(); ++i) {
        const double product = q[i] * format.value(seen.keys[t][i]);
        sum += product;
        magnitude += std::fabs(product);
      }
      scores[t] = scale * sum;
      slack[t] = gamma(shape.head + 2) * scale * magnitude;
      if (cap > 0.0) {
        scores[t] = cap * std::tanh(scores[t] / cap);
        slack[t] += 8.0 * kU * cap;
      }
      highest = std::max(highest, scores[t]);
      lowest = std::min(lowest, scores[t]);
    }
    const double largest = std::max(std::fabs(highest), std::fabs(lowest));
    const double common = kU * (highest - lowest) + 6.0 * kU * (blocks + 2.0) +
                          4.0 * kU * (largest + std::log(static_cast<double>(tokens)));
    double total = 0.0;
    double total_slack = 0.0;
    std::vector<double> magnitude(exact.size(), 0.0);
    for (size_t t = 0; t < tokens; ++t) {
      const double weight = std::exp(scores[t] - highest);
      const double d = slack[t] + 2.0 * kU * (highest - scores[t]) + common;
      expect(d < 0.01, "the bound does not hold for such scores");
      total += weight;
      total_slack += weight * d;
      for (size_t i = 0; i < exact.size(); ++i) {
        const double term = weight * format.value(seen.values[t][i]);
        exact[i] += term;
        magnitude[i] += std::fabs(term);
        error[i] += std::fabs(term) * d;
      }
    }
    const double order = gamma(2 * static_cast<int64_t>(tokens + blocks) + 8);
    for (size_t i = 0; i < exact.size(); ++i) {
      exact[i] /= total;
      error[i] = 1.01 * (error[i] + total_slack / total * magnitude[i]) / total +
                 order * magnitude[i] / total;
    }
  }
  std::vector<Interval> bounds;
  for (size_t i = 0; i < exact.size(); ++i) {
    bounds.push_back({format.order(format.round(exact[i] - error[i])),
                      format.order(format.round(exact[i] + error[i]))});
  }
  return bounds;
}

void check(const Format& format, const std::string& what, const std::vector<Interval>& bounds,
           const uint16_t* got) {
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (format.is_nan(got[i]) || format.order(got[i]) < bounds[i].lowest ||
        format.order(got[i]) > bounds[i].highest) {
      fail(what + " [" + std::to_string(i) + "]: got " + std::to_string(format.value(got[i])));
      return;
    }
  }
}

// Distinct slots in no order.
std::vector<int64_t> shuffled(Random& random, int64_t count) {
  std::vector<int64_t> slots(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) slots[static_cast<size_t>(i)] = i;
  for (int64_t i = count - 1; i > 0; --i) {
    std::swap(slots[static_cast<size_t>(i)], slots[static_cast<size_t>(random.below(i + 1))]);
  }
  return slots;
}

// A sequence whose keys and values are somewhere in a cache with more slots than tokens.
struct Cache {
  Rows keys, values;
  std::vector<int64_t> slots;  // of all sequences
  std::vector<int64_t> begins;

  Cache(const Format& format, const Shape& shape, const std::vector<int64_t>& lengths, int64_t pad,
        Random& random)
      : keys(format, total(lengths) + 5, shape.kv_heads, shape.head, pad),
        values(format, total(lengths) + 5, shape.kv_heads, shape.head_v, pad),
        slots(shuffled(random, total(lengths) + 5)),
        begins{0} {
    slots.resize(static_cast<size_t>(total(lengths)));
    for (const int64_t slot : slots) {
      keys.randomise(format, random, slot);
      values.randomise(format, random, slot);
    }
    for (const int64_t length : lengths) begins.push_back(begins.back() + length);
  }

  static int64_t total(const std::vector<int64_t>& lengths) {
    int64_t sum = 0;
    for (const int64_t length : lengths) sum += length;
    return sum;
  }

  void see(int64_t sequence, int64_t kv_head, Seen& seen) const {
    for (int64_t t = begins[static_cast<size_t>(sequence)];
         t < begins[static_cast<size_t>(sequence) + 1]; ++t) {
      const int64_t slot = slots[static_cast<size_t>(t)];
      seen.keys.push_back(keys.bits.data() + keys.at(slot, kv_head));
      seen.values.push_back(values.bits.data() + values.at(slot, kv_head));
    }
  }
};

AttentionSizes sizes_of(const Shape& shape, double scale, double cap) {
  return {shape.heads,
          shape.kv_heads,
          shape.head,
          shape.head_v,
          static_cast<float>(scale),
          static_cast<float>(cap)};
}

struct DecodeProblem {
  const Format& format;
  Shape shape;
  std::vector<int64_t> lengths;
  int64_t splits, max_splits;
  int64_t pad;  // odd: rows begin at any multiple of 2 bytes
  double scale, cap;
  Rows query;
  Cache cache;

  DecodeProblem(const Format& format_, Shape shape_, std::vector<int64_t> lengths_, int64_t splits_,
                int64_t pad_, double cap_, uint64_t seed)
      : DecodeProblem(format_, shape_, std::move(lengths_), splits_, pad_, cap_, Random(seed)) {}

  [[nodiscard]] int64_t sequences() const { return static_cast<int64_t>(lengths.size()); }

  [[nodiscard]] std::string text() const {
    std::string all = describe(shape) + " splits=" + std::to_string(splits) +
                      " pad=" + std::to_string(pad) + " cap=" + std::to_string(cap) + " lengths";
    for (const int64_t length : lengths) all += " " + std::to_string(length);
    return all;
  }

 private:
  DecodeProblem(const Format& format_, Shape shape_, std::vector<int64_t> lengths_, int64_t splits_,
                int64_t pad_, double cap_, Random random)
      : format(format_),
        shape(shape_),
        lengths(std::move(lengths_)),
        splits(splits_),
        max_splits(splits_ + 2),
        pad(pad_),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape_.head)))),
        cap(cap_),
        query(format_, static_cast<int64_t>(lengths.size()), shape_.heads, shape_.head, pad_),
        cache(format_, shape_, lengths, pad_, random) {
    for (int64_t i = 0; i < sequences(); ++i) query.randomise(format, random, i);
  }
};

struct Decoded {
  std::vector<uint16_t> output;  // [sequences, heads, head_v]
  std::vector<float> partials;   // [sequences, heads, max_splits, head_v + 1]
};

// Unit by unit, last first, with exactly as much scratch as the size function says and memory that
// may not be touched behind everything.
Decoded run(const Kernel& kernel, const DecodeProblem& problem) {
  run_case(kernel, problem.text());
  const Shape& shape = problem.shape;
  const Fenced<uint16_t> query(problem.query.bits);
  const Fenced<uint16_t> keys(problem.cache.keys.bits);
  const Fenced<uint16_t> values(problem.cache.values.bits);
  const Fenced<int64_t> slots(problem.cache.slots);
  const Rows layout(problem.format, problem.sequences(), shape.heads, shape.head_v, problem.pad);
  const Fenced<uint16_t> output(layout.bits);
  const int64_t width = shape.head_v + 1;
  const std::vector<float> garbage(
      static_cast<size_t>(problem.sequences() * shape.heads * problem.max_splits * width),
      std::nanf(""));
  const Fenced<float> partials(garbage);
  const AttentionSizes sizes = sizes_of(shape, problem.scale, problem.cap);
  const DecodeAttention call = {
      sizes,
      problem.sequences(),
      {query.data(), problem.query.stride(), problem.query.head_stride()},
      {keys.data(), problem.cache.keys.stride(), problem.cache.keys.head_stride()},
      {values.data(), problem.cache.values.stride(), problem.cache.values.head_stride()},
      slots.data(),
      problem.cache.begins.data(),
      partials.data(),
      shape.heads * problem.max_splits * width,
      problem.max_splits * width,
      width,
      problem.splits,
      problem.max_splits,
      {output.data(), layout.stride(), layout.head_stride()}};
  const int64_t floats =
      decode_scratch_floats(sizes, problem.splits, score_columns(cpu_features()));
  const Fenced<float> memory(static_cast<size_t>(floats));
  const Scratch scratch = {memory.data(), floats};
  DecodeAttentionKernel* entry = std::get<DecodeAttentionKernel*>(kernel.entry);
  for (int64_t unit = decode_units(call); unit-- > 0;) {
    entry(call, DecodeStage::kAttend, unit, unit + 1, scratch);
  }
  entry(call, DecodeStage::kMerge, 0, merge_units(call), scratch);

  Decoded decoded;
  const std::string what = std::string(kernel.name) + " " + problem.text();
  expect(output.intact() && partials.intact() && memory.intact(), what + ": wrote out of range");
  decoded.partials.assign(partials.data(), partials.data() + garbage.size());
  for (int64_t i = 0; i < layout.count; ++i) {
    for (int64_t head = 0; head < layout.heads; ++head) {
      const uint16_t* row = output.data() + layout.at(i, head);
      decoded.output.insert(decoded.output.end(), row, row + layout.width);
      const bool padding_kept = std::all_of(row + layout.width, row + layout.head_stride(),
                                            [&](uint16_t v) { return v == problem.format.nan; });
      expect(padding_kept, what + ": wrote between output rows");
    }
  }
  return decoded;
}

// Marks: a split that saw something has a finite logarithm, the others -infinity.
void check_marks(const Kernel& kernel, const DecodeProblem& problem, const Decoded& decoded) {
  const int64_t width = problem.shape.head_v + 1;
  for (int64_t i = 0; i < problem.sequences() * problem.shape.heads; ++i) {
    const int64_t length = problem.lengths[static_cast<size_t>(i / problem.shape.heads)];
    const int64_t share = split_tokens(length, problem.splits);
    for (int64_t split = 0; split < problem.max_splits; ++split) {
      const float mark = decoded.partials[static_cast<size_t>(
          (i * problem.max_splits + split) * width + problem.shape.head_v)];
      const bool used = split < problem.splits && split * share < length;
      if (used ? !std::isfinite(mark) : mark != -std::numeric_limits<float>::infinity()) {
        fail(std::string(kernel.name) + " " + problem.text() + ": split " + std::to_string(split) +
             " is marked " + std::to_string(mark));
        return;
      }
    }
  }
}

void test_decode(const DecodeProblem& problem) {
  const Shape& shape = problem.shape;
  const std::vector<const Kernel*> tested =
      runnable(Operation::kDecodeAttention, problem.format.type);
  if (tested.empty()) return;
  std::vector<Decoded> results;
  for (const Kernel* kernel : tested) {
    results.push_back(run(*kernel, problem));
    check_marks(*kernel, problem, results.back());
  }
  for (int64_t i = 0; i < problem.sequences(); ++i) {
    for (int64_t head = 0; head < shape.heads; ++head) {
      Seen seen;
      problem.cache.see(i, head / (shape.heads / shape.kv_heads), seen);
      const std::vector<Interval> bounds =
          reference(problem.format, shape, problem.query.bits.data() + problem.query.at(i, head),
                    seen, problem.scale, problem.cap);
      for (size_t k = 0; k < tested.size(); ++k) {
        check(problem.format,
              std::string(tested[k]->name) + " " + problem.text() + " sequence " +
                  std::to_string(i) + " head " + std::to_string(head),
              bounds, results[k].output.data() + (i * shape.heads + head) * shape.head_v);
      }
    }
  }
}

struct ExtendProblem {
  const Format& format;
  Shape shape;
  std::vector<int64_t> prefixes, lengths;
  int64_t threads;  // that the work is divided for
  int64_t pad;
  double scale, cap;
  int64_t tokens;
  Cache cache;
  Rows query, keys, values;

  ExtendProblem(const Format& format_, Shape shape_, std::vector<int64_t> prefixes_,
                std::vector<int64_t> lengths_, int64_t threads_, int64_t pad_, double cap_,
                uint64_t seed)
      : ExtendProblem(format_, shape_, std::move(prefixes_), std::move(lengths_), threads_, pad_,
                      cap_, Random(seed)) {}

  [[nodiscard]] std::string text() const {
    std::string all = describe(shape) + " pad=" + std::to_string(pad) +
                      " cap=" + std::to_string(cap) + " prefix+new";
    for (size_t i = 0; i < lengths.size(); ++i) {
      all += " " + std::to_string(prefixes[i]) + "+" + std::to_string(lengths[i]);
    }
    return all;
  }

 private:
  ExtendProblem(const Format& format_, Shape shape_, std::vector<int64_t> prefixes_,
                std::vector<int64_t> lengths_, int64_t threads_, int64_t pad_, double cap_,
                Random random)
      : format(format_),
        shape(shape_),
        prefixes(std::move(prefixes_)),
        lengths(std::move(lengths_)),
        threads(threads_),
        pad(pad_),
        scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape_.head)))),
        cap(cap_),
        tokens(Cache::total(lengths)),
        cache(format_, shape_, prefixes, pad_, random),
        query(format_, tokens, shape_.heads, shape_.head, pad_),
        keys(format_, tokens, shape_.kv_heads, shape_.head, pad_),
        values(format_, tokens, shape_.kv_heads, shape_.head_v, pad_) {
    for (int64_t i = 0; i < tokens; ++i) {
      query.randomise(format, random, i);
      keys.randomise(format, random, i);
      values.randomise(format, random, i);
    }
  }
};

// [tokens, heads, head_v].
std::vector<uint16_t> run(const Kernel& kernel, const ExtendProblem& problem) {
  run_case(kernel, problem.text());
  const Shape& shape = problem.shape;
  const Fenced<uint16_t> query(problem.query.bits);
  const Fenced<uint16_t> new_keys(problem.keys.bits);
  const Fenced<uint16_t> new_values(problem.values.bits);
  const Fenced<uint16_t> keys(problem.cache.keys.bits);
  const Fenced<uint16_t> values(problem.cache.values.bits);
  const Fenced<int64_t> slots(problem.cache.slots);
  const Rows layout(problem.format, problem.tokens, shape.heads, shape.head_v, problem.pad);
  const Fenced<uint16_t> output(layout.bits);
  const AttentionSizes sizes = sizes_of(shape, problem.scale, problem.cap);
  std::vector<ExtendSequence> sequences;
  int64_t first = 0;
  for (size_t i = 0; i < problem.lengths.size(); ++i) {
    sequences.push_back(
        {first, problem.lengths[i], problem.prefixes[i], slots.data() + problem.cache.begins[i]});
    first += problem.lengths[i];
  }
  int64_t largest = 0;
  const std::vector<ExtendUnit> units = extend_units(
      sequences.data(), static_cast<int64_t>(sequences.size()), sizes, problem.threads, &largest);
  const ExtendAttention call = {
      sizes,
      sequences.data(),
      units.data(),
      largest,
      {query.data(), problem.query.stride(), problem.query.head_stride()},
      {new_keys.data(), problem.keys.stride(), problem.keys.head_stride()},
      {new_values.data(), problem.values.stride(), problem.values.head_stride()},
      {keys.data(), problem.cache.keys.stride(), problem.cache.keys.head_stride()},
      {values.data(), problem.cache.values.stride(), problem.cache.values.head_stride()},
      {output.data(), layout.stride(), layout.head_stride()}};
  const int64_t floats = extend_scratch_floats(sizes, largest, score_columns(cpu_features()));
  const Fenced<float> memory(static_cast<size_t>(floats));
  ExtendAttentionKernel* entry = std::get<ExtendAttentionKernel*>(kernel.entry);
  for (auto unit = static_cast<int64_t>(units.size()); unit-- > 0;) {
    entry(call, unit, unit + 1, {memory.data(), floats});
  }
  const std::string what = std::string(kernel.name) + " " + problem.text();
  expect(output.intact() && memory.intact(), what + ": wrote out of range");
  std::vector<uint16_t> result;
  for (int64_t i = 0; i < layout.count; ++i) {
    for (int64_t head = 0; head < layout.heads; ++head) {
      const uint16_t* row = output.data() + layout.at(i, head);
      result.insert(result.end(), row, row + layout.width);
      const bool padding_kept = std::all_of(row + layout.width, row + layout.head_stride(),
                                            [&](uint16_t v) { return v == problem.format.nan; });
      expect(padding_kept, what + ": wrote between output rows");
    }
  }
  return result;
}

// References of a long problem are computed for an evenly spread choice of its queries.
constexpr int64_t kReferenceQueries = 60;

void test_extend(const ExtendProblem& problem) {
  const Shape& shape = problem.shape;
  const int64_t group = shape.heads / shape.kv_heads;
  const std::vector<const Kernel*> tested =
      runnable(Operation::kExtendAttention, problem.format.type);
  if (tested.empty()) return;
  std::vector<std::vector<uint16_t>> results;
  for (const Kernel* kernel : tested) results.push_back(run(*kernel, problem));
  const int64_t queries = problem.tokens * shape.heads;
  const int64_t step = std::max<int64_t>(1, queries / kReferenceQueries) | 1;
  int64_t first = 0;
  for (size_t sequence = 0; sequence < problem.lengths.size(); ++sequence) {
    for (int64_t position = 0; position < problem.lengths[sequence]; ++position) {
      for (int64_t head = 0; head < shape.heads; ++head) {
        const int64_t token = first + position;
        const bool last = position == problem.lengths[sequence] - 1;
        if ((token * shape.heads + head) % step != 0 && !last) continue;
        Seen seen;
        problem.cache.see(static_cast<int64_t>(sequence), head / group, seen);
        for (int64_t t = first; t <= token; ++t) {
          seen.keys.push_back(problem.keys.bits.data() + problem.keys.at(t, head / group));
          seen.values.push_back(problem.values.bits.data() + problem.values.at(t, head / group));
        }
        const std::vector<Interval> bounds = reference(
            problem.format, shape, problem.query.bits.data() + problem.query.at(token, head), seen,
            problem.scale, problem.cap);
        for (size_t k = 0; k < tested.size(); ++k) {
          check(problem.format,
                std::string(tested[k]->name) + " " + problem.text() + " sequence " +
                    std::to_string(sequence) + " position " + std::to_string(position) + " head " +
                    std::to_string(head),
                bounds, results[k].data() + (token * shape.heads + head) * shape.head_v);
        }
      }
    }
    first += problem.lengths[sequence];
  }
}

constexpr Shape kShapes[] = {{4, 4, 64, 64},    {8, 2, 64, 64},   {8, 1, 128, 128}, {6, 2, 80, 80},
                             {5, 1, 96, 96},    {14, 2, 112, 64}, {6, 1, 64, 128},  {9, 1, 256, 72},
                             {12, 2, 128, 112}, {2, 2, 8, 16}};

void test_shapes(const Format& format) {
  uint64_t seed = 1;
  for (const Shape& shape : kShapes) {
    const int64_t pad = static_cast<int64_t>(seed % 3);  // 0, 1 (2-byte alignment only), 2
    const double cap = seed % 4 == 0 ? 3.0 : 0.0;
    test_decode({format,
                 shape,
                 {1, 31, 0, 32, 33, 100, 17},
                 1 + static_cast<int64_t>(seed % 3),
                 pad,
                 cap,
                 seed});
    test_extend({format,
                 shape,
                 {0, 33, 0, 5},
                 {7, 3, 40, 1},
                 1 + static_cast<int64_t>(seed % 3),
                 pad,
                 cap,
                 seed});
    ++seed;
  }
  const Shape gqa = {4, 1, 64, 64};
  test_decode({format, gqa, {512, 1}, 1, 0, 0.0, 100});
  test_decode({format, gqa, {512}, 5, 4, 50.0, 101});
  test_decode({format, gqa, {2048}, 8, 0, 0.0, 102});
  test_decode({format, {1, 1, 128, 128}, {2048}, 1, 0, 0.0, 103});
  test_extend({format, gqa, {0}, {160}, 1, 0, 0.0, 104});
  test_extend({format, gqa, {512}, {33}, 8, 4, 0.0, 105});
  test_extend({format, {1, 1, 64, 64}, {2048}, {2}, 1, 0, 30.0, 106});
}

void set_row(Rows& rows, int64_t index, int64_t head, uint16_t bits) {
  std::fill_n(rows.bits.begin() + rows.at(index, head), rows.width, bits);
}

// NaN in a key or a value that is seen reaches the output, and nothing else does.
void test_decode_specials(const Format& format) {
  const Shape shape = {4, 2, 64, 64};
  for (const Kernel* kernel : runnable(Operation::kDecodeAttention, format.type)) {
    const std::string name = kernel->name;
    for (const int64_t token : {0, 31, 69}) {
      DecodeProblem problem(format, shape, {70, 70}, 2, 0, 0.0, 7);
      const std::vector<uint16_t> clean = run(*kernel, problem).output;
      const int64_t slot = problem.cache.slots[static_cast<size_t>(70 + token)];
      DecodeProblem bad_key = problem;
      bad_key.cache.keys.bits[static_cast<size_t>(bad_key.cache.keys.at(slot, 1) + 9)] = format.nan;
      DecodeProblem bad_value = problem;
      bad_value.cache.values.bits[static_cast<size_t>(bad_value.cache.values.at(slot, 1) + 9)] =
          format.nan;
      const std::vector<uint16_t> of_key = run(*kernel, bad_key).output;
      const std::vector<uint16_t> of_value = run(*kernel, bad_value).output;
      for (size_t i = 0; i < clean.size(); ++i) {
        const auto place = static_cast<int64_t>(i);
        const bool touched = place / (4 * 64) == 1 && place / 64 % 4 >= 2;  // sequence 1, KV head 1
        expect(touched ? format.is_nan(of_key[i]) : of_key[i] == clean[i], name + ": NaN in a key");
        expect(touched && place % 64 == 9 ? format.is_nan(of_value[i]) : of_value[i] == clean[i],
               name + ": NaN in a value");
      }
    }
    // Scores of -infinity only: nothing to attend to.
    DecodeProblem masked(format, shape, {40, 40}, 2, 0, 0.0, 8);
    for (int64_t head = 0; head < 4; ++head) set_row(masked.query, 1, head, format.round(1.0));
    for (int64_t t = 40; t < 80; ++t) {
      const int64_t slot = masked.cache.slots[static_cast<size_t>(t)];
      for (int64_t head = 0; head < 2; ++head) {
        set_row(masked.cache.keys, slot, head, format.infinity | 0x8000);
      }
    }
    const std::vector<uint16_t> output = run(*kernel, masked).output;
    expect(std::all_of(output.begin() + 4 * 64, output.end(), [](uint16_t v) { return v == 0; }),
           name + ": a fully masked row is not 0");
    expect(std::none_of(output.begin(), output.end(), [&](uint16_t v) { return format.is_nan(v); }),
           name + ": a fully masked row gives NaN");
    // One score of -infinity among others weighs nothing.
    DecodeProblem partly = masked;
    const int64_t last = partly.cache.slots[79];
    set_row(partly.cache.keys, last, 0, format.round(0.5));
    const std::vector<uint16_t> single = run(*kernel, partly).output;
    for (int64_t i = 0; i < 2 * 64; ++i) {
      const uint16_t only =
          partly.cache.values.bits[static_cast<size_t>(partly.cache.values.at(last, 0) + i % 64)];
      expect(single[static_cast<size_t>(4 * 64 + i)] == only,
             name + ": a score of -infinity has weight");
    }
  }
}

// What later tokens hold does not touch earlier ones, not even NaN.
void test_extend_specials(const Format& format) {
  const Shape shape = {4, 2, 64, 64};
  for (const Kernel* kernel : runnable(Operation::kExtendAttention, format.type)) {
    const ExtendProblem problem(format, shape, {9}, {40}, 1, 0, 0.0, 9);
    const std::vector<uint16_t> clean = run(*kernel, problem);
    for (const int64_t token : {0, 1, 7, 31, 39}) {
      ExtendProblem bad = problem;
      bad.keys.bits[static_cast<size_t>(bad.keys.at(token, 0) + 3)] = format.nan;
      bad.values.bits[static_cast<size_t>(bad.values.at(token, 1) + 3)] = format.nan;
      const std::vector<uint16_t> result = run(*kernel, bad);
      for (size_t i = 0; i < clean.size(); ++i) {
        const auto place = static_cast<int64_t>(i);
        const bool sees = place / (4 * 64) >= token;
        const bool first_kv_head = place / 64 % 4 < 2;
        const bool touched = sees && (first_kv_head || place % 64 == 3);
        if (touched ? !format.is_nan(result[i]) : result[i] != clean[i]) {
          fail(std::string(kernel->name) + ": NaN at token " + std::to_string(token) +
               " and output " + std::to_string(place));
          return;
        }
      }
    }
  }
}

// Scores of the lowest number that there is (BF16 alone reaches it, as a sum of three exact
// products) are scores, not what a kernel may put behind a row's end.
void test_lowest_scores() {
  const Format& format = kBf16Format;
  const Shape shape = {2, 1, 64, 64};
  const double parts[] = {std::ldexp(255.0, 120), std::ldexp(255.0, 112), std::ldexp(255.0, 104)};
  for (const Kernel* kernel : runnable(Operation::kExtendAttention, format.type)) {
    ExtendProblem problem(format, shape, {0}, {5}, 1, 0, 0.0, 10);
    for (int64_t token = 0; token < problem.tokens; ++token) {
      for (int64_t i = 0; i < shape.head; ++i) {
        const double part = i < 3 ? parts[i] : 0.0;
        for (int64_t head = 0; head < shape.heads; ++head) {
          problem.query.bits[static_cast<size_t>(problem.query.at(token, head) + i)] =
              format.round(part);
        }
        problem.keys.bits[static_cast<size_t>(problem.keys.at(token, 0) + i)] = format.round(-8.0);
        problem.values.bits[static_cast<size_t>(problem.values.at(token, 0) + i)] =
            format.round(1.0);
      }
    }
    const std::vector<uint16_t> result = run(*kernel, problem);
    const uint16_t one = format.round(1.0);
    expect(std::all_of(result.begin(), result.end(), [&](uint16_t bits) { return bits == one; }),
           std::string(kernel->name) + ": equal scores of the lowest number lose weight");
  }
}

// A query's result does not depend on what else is in the call.
void test_batch_invariance(const Format& format) {
  const Shape shape = {8, 2, 64, 64};
  for (const Kernel* kernel : runnable(Operation::kDecodeAttention, format.type)) {
    const DecodeProblem both(format, shape, {100, 37}, 3, 0, 0.0, 11);
    DecodeProblem alone = both;
    alone.lengths = {100};
    alone.cache.begins = {0, 100};
    const std::vector<uint16_t> pair = run(*kernel, both).output;
    const std::vector<uint16_t> single = run(*kernel, alone).output;
    expect(std::equal(single.begin(), single.begin() + 8 * 64, pair.begin()),
           std::string(kernel->name) + ": a result depends on the rest of the batch");
  }
}

void test_exponential(const std::string& name, ExpKernel* kernel, bool takes_nan) {
  // Every 10007th number from -0 to -infinity, then the ends.
  std::vector<float> arguments;
  for (uint32_t bits = 0x80000000U; bits < 0xff800000U; bits += 10007) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    if (value > -120.0F || bits % 5 == 0) arguments.push_back(value);
  }
  for (const float value :
       {0.0F, -0.0F, -0x1p-149F, -87.33655F, -103.97208F, -103.97209F, -104.0F}) {
    arguments.push_back(value);
  }
  std::vector<float> results(arguments.size());
  kernel(arguments.data(), static_cast<int64_t>(arguments.size()), results.data());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const double exact = std::exp(static_cast<double>(arguments[i]));
    int exponent;
    std::frexp(exact, &exponent);
    const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
    if (!(std::fabs(static_cast<double>(results[i]) - exact) <= 2.0 * ulp)) {
      fail(name + ": exp(" + std::to_string(arguments[i]) + ") is off by more than 2 ulp");
      return;
    }
  }
  const float infinity = std::numeric_limits<float>::infinity();
  const float ends[] = {-infinity, std::nanf(""), -std::numeric_limits<float>::max(), 0.0F};
  float out[4];
  kernel(ends, 4, out);
  expect(out[0] == 0.0F && !std::signbit(out[0]), name + ": exp(-inf) is not 0");
  expect(!takes_nan || std::isnan(out[1]), name + ": exp lost a NaN");
  expect(out[2] == 0.0F, name + ": exp of the least number is not 0");
  expect(out[3] == 1.0F, name + ": exp(0) is not 1");
}

void test_division_of_work() {
  expect(decode_splits(8, 8, 4) == 1, "decode_splits: 8 KV heads keep 8 threads busy");
  expect(decode_splits(2, 8, 16) == 4, "decode_splits: 2 KV heads on 8 threads");
  expect(decode_splits(3, 8, 16) == 3, "decode_splits: 3 KV heads leave no thread of 8 idle");
  expect(decode_splits(1, 8, 3) == 3, "decode_splits: no more than there is room for");
  for (const int64_t length : {1, 64, 65, 512, 2048}) {
    for (const int64_t splits : {1, 3, 8}) {
      const int64_t share = split_tokens(length, splits);
      expect(share >= kLeastSplit && share * splits >= length, "split_tokens leaves tokens over");
      expect(share % 32 == 0, "split_tokens: a split ends within a tile");
    }
  }
  const AttentionSizes sizes = sizes_of({8, 2, 64, 64}, 1.0, 0.0);
  const auto largest_of = [&](int64_t tokens, int64_t threads) {
    const ExtendSequence sequence = {0, tokens, 0, nullptr};
    int64_t largest = 0;
    const std::vector<ExtendUnit> units = extend_units(&sequence, 1, sizes, threads, &largest);
    int64_t positions = 0;
    for (const ExtendUnit& unit : units) positions += unit.positions;
    expect(positions == tokens * sizes.kv_heads, "extend_units leaves positions out");
    return largest;
  };
  expect(largest_of(1000, 1) == kUnitRows / 4, "extend_units: a unit has kUnitRows queries");
  expect(largest_of(100, 8) == 25, "extend_units: 100 tokens of 2 KV heads keep 8 threads busy");
  expect(largest_of(20, 64) == 8, "extend_units: a unit has 8 positions, or conversions prevail");
  expect(largest_of(3, 64) == 3, "extend_units: a short sequence is one unit");
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

// Keys of one tile of `kernel`: score_columns() has room for the widest of all kernels.
int64_t columns_of(const Kernel& kernel) {
  constexpr int64_t kPortable = 32;
  return (kernel.needs & kRvv) != 0 ? cpu_features().vlen_bits / 8 : kPortable;
}

// One number too few ends the process before anything is computed.
void test_scratch_is_checked(const Format& format) {
  const AttentionSizes sizes = sizes_of({4, 2, 64, 64}, 1.0, 0.0);
  for (const Kernel* kernel : runnable(Operation::kDecodeAttention, format.type)) {
    DecodeAttention call{};
    call.sizes = sizes;
    call.splits = 1;
    const int64_t floats = decode_scratch_floats(sizes, call.splits, columns_of(*kernel));
    auto* entry = std::get<DecodeAttentionKernel*>(kernel->entry);
    for (const int64_t lacking : {0, 1}) {
      const bool ended =
          aborts([&] { entry(call, DecodeStage::kAttend, 0, 0, {nullptr, floats - lacking}); });
      expect(ended == (lacking > 0), std::string(kernel->name) + ": scratch is not checked");
    }
  }
  for (const Kernel* kernel : runnable(Operation::kExtendAttention, format.type)) {
    ExtendAttention call{};
    call.sizes = sizes;
    call.largest_unit = 3;
    const int64_t floats = extend_scratch_floats(sizes, call.largest_unit, columns_of(*kernel));
    auto* entry = std::get<ExtendAttentionKernel*>(kernel->entry);
    for (const int64_t lacking : {0, 1}) {
      const bool ended = aborts([&] { entry(call, 0, 0, {nullptr, floats - lacking}); });
      expect(ended == (lacking > 0), std::string(kernel->name) + ": scratch is not checked");
    }
  }
}

}  // namespace

void test_attention() {
  test_division_of_work();
  test_exponential("exp_nonpositive_portable", exp_nonpositive_portable, true);
#if defined(__riscv)
  if (cpu_features().has(kRvv)) {
    test_exponential("exp_nonpositive_rvv", exp_nonpositive_rvv, true);
    test_exponential("exp_nonpositive_number_rvv", exp_nonpositive_number_rvv, false);
  }
#endif
  test_lowest_scores();
  for (const Format* format : {&kBf16Format, &kFp16Format}) {
    test_shapes(*format);
    test_decode_specials(*format);
    test_extend_specials(*format);
    test_batch_invariance(*format);
    test_scratch_is_checked(*format);
    const std::string type = name_of(format->type);
    note_dispatch("decode_attention", type,
                  select_kernel(Operation::kDecodeAttention, format->type, 1, cpu_features()));
    note_dispatch("extend_attention", type,
                  select_kernel(Operation::kExtendAttention, format->type, 1, cpu_features()));
  }
}

}  // namespace sgl_rvv::tests
