// Walks the registry and holds every kernel that this CPU can run against a float64 reference.
//
//   kernel_tests            runs everything; exit code 1 when something is wrong
//   kernel_tests --list     one line a kernel: name, requirement, "available" or "unavailable"
//   kernel_tests --kernel NAME   only that kernel
//
// The last line is a JSON object: {"vlen_bits", "rvv", "cases", "failures", "kernels": {name:
// {"cases", "hash"}}, "dispatch": {"rows": name}}.
//
// The bound. A kernel's FP32 sum of K products differs from the exact sum r by at most
//   e = gamma * (sum |a_k b_k| + |bias|),   gamma = (K + 1) u / (1 - (K + 1) u),   u = 2^-24
// (K additions and the bias; the product of two BF16 is exact in FP32. Higham, Accuracy and
// Stability of Numerical Algorithms, section 3.1). Rounding to BF16 is monotonic, so the result
// lies between round(r - e) and round(r + e): for nearly all outputs that is one value, and a
// truncating store or a lost product shows.
//
// Because products are exact and every kernel adds in the order of k, all kernels agree to the last
// bit; the hash of their results, printed at the end, must be the same at every VLEN and on every
// architecture.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "core/bf16.h"
#include "core/pack_weight.h"
#include "core/packed_layout.h"
#include "core/registry.h"

namespace {

using namespace sgl_rvv;

constexpr uint16_t kGuard = 0x7bcd;  // around outputs: whatever is written out of range shows
constexpr uint16_t kInfinity = 0x7f80;
constexpr uint16_t kNan = 0x7fc0;

// Products that the reference of one problem may compute; of larger problems it checks a part.
constexpr int64_t kReferenceProducts = 30000;

int failures = 0;

void fail(const std::string& what) {
  ++failures;
  if (failures <= 20) std::fprintf(stderr, "FAIL %s\n", what.c_str());
}

void expect(bool holds, const std::string& what) {
  if (!holds) fail(what);
}

// splitmix64: the same numbers on every platform.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t bits() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }

  // A BF16 between -2 and 2 whose exponent varies.
  uint16_t bf16() {
    const double unit = static_cast<double>(bits() >> 11) * 0x1.0p-53;
    const int exponent = static_cast<int>(bits() % 6);
    const double value = std::ldexp(2.0 * unit - 1.0, 1 - exponent);
    return float_to_bf16(static_cast<float>(value));
  }

 private:
  uint64_t state_;
};

// Rounds a double to BF16 at once, to nearest even: through FP32 it would be rounded twice.
uint16_t round_to_bf16(double value) {
  if (std::isnan(value)) return kNan;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0.0) return sign;
  int exponent;
  std::frexp(magnitude, &exponent);              // magnitude in [2^(exponent - 1), 2^exponent)
  const int ulp = std::max(exponent - 8, -133);  // 8 significant bits; subnormals end at 2^-133
  const double rounded = std::nearbyint(std::ldexp(magnitude, -ulp));
  const double result = std::ldexp(rounded, ulp);
  if (result > 0x1.fep127) return sign | kInfinity;
  return sign | static_cast<uint16_t>(float_to_bf16(static_cast<float>(result)) & 0x7fff);
}

// Orders BF16 patterns as numbers (no NaN).
int order(uint16_t bits) {
  return (bits & 0x8000) != 0 ? -static_cast<int>(bits & 0x7fff) : static_cast<int>(bits);
}

bool is_nan(uint16_t bits) {
  return (bits & 0x7fff) > kInfinity;
}

struct Problem {
  int64_t m, n, k;
  std::vector<uint16_t> left;    // [m, k]
  std::vector<uint16_t> weight;  // [n, k]
  std::vector<float> bias;       // [n], or empty
};

Problem random_problem(int64_t m, int64_t n, int64_t k, bool with_bias) {
  Random random(static_cast<uint64_t>(((m * 4099) + n) * 4099 + k) * 2 + (with_bias ? 1 : 0));
  Problem problem{m, n, k, {}, {}, {}};
  problem.left.resize(static_cast<size_t>(m * k));
  problem.weight.resize(static_cast<size_t>(n * k));
  for (auto& value : problem.left) value = random.bf16();
  for (auto& value : problem.weight) value = random.bf16();
  if (with_bias) {
    problem.bias.resize(static_cast<size_t>(n));
    for (auto& value : problem.bias) value = bf16_to_float(random.bf16()) * 3.0F;
  }
  return problem;
}

std::string describe(const Kernel& kernel, const Problem& problem) {
  return std::string(kernel.name) + " M=" + std::to_string(problem.m) +
         " N=" + std::to_string(problem.n) + " K=" + std::to_string(problem.k) +
         (problem.bias.empty() ? "" : " bias");
}

std::vector<uint16_t> packed(const Problem& problem) {
  std::vector<uint16_t> out(static_cast<size_t>(packed_elements(problem.n, problem.k)), kGuard);
  pack_weight_16(problem.weight.data(), problem.k, problem.n, problem.k, 0,
                 packed_blocks(problem.n), out.data());
  return out;
}

// Runs `kernel` block range by block range, into rows with guards between them; returns [m, n].
std::vector<uint16_t> run(const Kernel& kernel, const Problem& problem) {
  const std::vector<uint16_t> weight = packed(problem);
  std::vector<float> left(static_cast<size_t>(left_elements(problem.m, problem.k)));
  prepare_left_bf16(problem.left.data(), problem.k, problem.m, problem.k, 0, left_tiles(problem.m),
                    left.data());
  std::vector<float> bias;
  if (!problem.bias.empty()) {
    bias.resize(static_cast<size_t>(bias_elements(problem.n)));
    prepare_bias(problem.bias.data(), problem.n, bias.data());
  }
  // An odd stride and an odd start: rows are then aligned to 2 bytes and no more.
  const int64_t stride = problem.n + 3 + (problem.n % 2);
  std::vector<uint16_t> buffer(static_cast<size_t>(stride * problem.m + 2), kGuard);
  uint16_t* out = buffer.data() + 1;
  const PackedLinear call = {problem.m,   problem.n,     problem.k,
                             left.data(), weight.data(), bias.empty() ? nullptr : bias.data(),
                             out,         stride};
  const int64_t blocks = packed_blocks(problem.n);
  const int64_t half = blocks / 2;
  kernel.packed_linear(call, half, blocks);
  for (int64_t column = 0; column < std::min(half * kBlockColumns, problem.n); ++column) {
    expect(out[column] == kGuard, describe(kernel, problem) + ": wrote a block it was not given");
    if (out[column] != kGuard) break;
  }
  kernel.packed_linear(call, 0, half);

  std::vector<uint16_t> result;
  expect(buffer[0] == kGuard, describe(kernel, problem) + ": wrote before the output");
  for (int64_t row = 0; row < problem.m; ++row) {
    const uint16_t* begin = out + row * stride;
    result.insert(result.end(), begin, begin + problem.n);
    for (int64_t column = problem.n; column < stride; ++column) {
      expect(begin[column] == kGuard, describe(kernel, problem) + ": wrote after a row");
    }
  }
  return result;
}

// What the float64 reference allows an output to be.
struct Interval {
  int64_t row, column;
  int lowest, highest;  // in order()
};

// The bounds of all outputs, or, of a large problem, of an evenly spread choice that holds its
// corners.
std::vector<Interval> reference(const Problem& problem) {
  const double terms = std::ldexp(static_cast<double>(problem.k + 1), -24);
  const double gamma = terms / (1.0 - terms);
  const int64_t outputs = problem.m * problem.n;
  const int64_t step = std::max<int64_t>(1, outputs * problem.k / kReferenceProducts) | 1;
  std::vector<Interval> bounds;
  const auto add = [&](int64_t output) {
    const int64_t row = output / problem.n;
    const int64_t column = output % problem.n;
    const uint16_t* a = problem.left.data() + row * problem.k;
    const uint16_t* b = problem.weight.data() + column * problem.k;
    double exact = 0.0;
    double magnitude = 0.0;
    for (int64_t i = 0; i < problem.k; ++i) {
      const double product =
          static_cast<double>(bf16_to_float(a[i])) * static_cast<double>(bf16_to_float(b[i]));
      exact += product;
      magnitude += std::fabs(product);
    }
    if (!problem.bias.empty()) {
      const double bias = static_cast<double>(problem.bias[static_cast<size_t>(column)]);
      exact += bias;
      magnitude += std::fabs(bias);
    }
    const double error = gamma * magnitude;
    bounds.push_back(
        {row, column, order(round_to_bf16(exact - error)), order(round_to_bf16(exact + error))});
  };
  for (int64_t output = 0; output < outputs; output += step) add(output);
  for (const int64_t corner : {problem.n - 1, outputs - problem.n, outputs - 1}) add(corner);
  return bounds;
}

void check_bounds(const Kernel& kernel, const Problem& problem, const std::vector<Interval>& bounds,
                  const std::vector<uint16_t>& result) {
  for (const Interval& bound : bounds) {
    const uint16_t got = result[static_cast<size_t>(bound.row * problem.n + bound.column)];
    if (is_nan(got) || order(got) < bound.lowest || order(got) > bound.highest) {
      fail(describe(kernel, problem) + " at [" + std::to_string(bound.row) + ", " +
           std::to_string(bound.column) + "]: got " + std::to_string(bf16_to_float(got)));
      return;
    }
  }
}

uint16_t single(const Kernel& kernel, int64_t rows, uint16_t a, uint16_t b, int64_t row,
                int64_t column) {
  Problem problem{rows, 33, 5, {}, {}, {}};
  problem.left.assign(static_cast<size_t>(rows * 5), 0);
  problem.weight.assign(33 * 5, 0);
  problem.left[static_cast<size_t>(row * 5 + 2)] = a;
  problem.weight[static_cast<size_t>(column * 5 + 2)] = b;
  const std::vector<uint16_t> result = run(kernel, problem);
  // Only that row and that column can be touched by a NaN or an infinity.
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < 33; ++c) {
      if (r == row || c == column) continue;
      expect(result[static_cast<size_t>(r * 33 + c)] == 0,
             std::string(kernel.name) + ": a special value leaked into another output");
    }
  }
  return result[static_cast<size_t>(row * 33 + column)];
}

void check_special_values(const Kernel& kernel, int64_t rows) {
  const std::string name = kernel.name;
  const uint16_t one = float_to_bf16(1.0F);
  const uint16_t minus = float_to_bf16(-1.0F);
  for (const int64_t column : {0, 1, 15, 16, 31, 32}) {
    const int64_t row = rows - 1;
    expect(is_nan(single(kernel, rows, kNan, one, row, column)), name + ": NaN in mat1 was lost");
    expect(is_nan(single(kernel, rows, one, 0xffff, row, column)),
           name + ": NaN in the weight was lost");
    expect(single(kernel, rows, kInfinity, one, row, column) == kInfinity, name + ": inf * 1");
    expect(single(kernel, rows, minus, kInfinity, row, column) == 0xff80, name + ": -1 * inf");
    expect(is_nan(single(kernel, rows, kInfinity, 0, row, column)), name + ": inf * 0 is NaN");
    // 0x7f7f is the largest finite BF16: times itself it overflows FP32.
    expect(single(kernel, rows, 0x7f7f, 0x7f7f, row, column) == kInfinity, name + ": overflow");
    // Subnormal BF16 survive: 2^-133 * 1.
    expect(single(kernel, rows, 0x0001, one, row, column) == 0x0001, name + ": subnormal");
  }
}

// Ties: 1 + 2^-8 lies midway between 1 and 1 + 2^-7, 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6. To
// even: 1 and 1 + 2^-6.
void check_rounding(const Kernel& kernel, int64_t rows) {
  const uint16_t one = float_to_bf16(1.0F);
  for (const bool upper : {false, true}) {
    Problem problem{rows, 34, 2, {}, {}, {}};
    for (int64_t row = 0; row < rows; ++row) {
      problem.left.push_back(one);
      problem.left.push_back(float_to_bf16(upper ? 0x1.8p-7F : 0x1p-8F));
    }
    problem.weight.assign(34 * 2, one);
    const uint16_t right = upper ? 0x3f82 : 0x3f80;
    for (const uint16_t value : run(kernel, problem)) {
      if (value != right) {
        fail(std::string(kernel.name) + ": a tie was not rounded to even");
        break;
      }
    }
    // Negative: the same by magnitude (truncation toward minus infinity shows here).
    for (size_t i = 0; i < problem.left.size(); ++i) problem.left[i] ^= 0x8000;
    for (const uint16_t value : run(kernel, problem)) {
      if (value != (right | 0x8000)) {
        fail(std::string(kernel.name) + ": a negative tie was not rounded to even");
        break;
      }
    }
  }
}

uint64_t fnv1a(const std::vector<uint16_t>& values, uint64_t hash) {
  for (const uint16_t value : values) {
    for (const int shift : {0, 8}) hash = (hash ^ ((value >> shift) & 0xffU)) * 0x100000001b3ULL;
  }
  return hash;
}

void check_packing() {
  for (const int64_t n : {1, 31, 32, 33, 70}) {
    for (const int64_t k : {1, 2, 31, 33, 100}) {
      const Problem problem = random_problem(1, n, k, false);
      const std::vector<uint16_t> bytes = packed(problem);
      for (int64_t column = 0; column < packed_blocks(n) * kBlockColumns; ++column) {
        for (int64_t i = 0; i < k; ++i) {
          const uint16_t want =
              column < n ? problem.weight[static_cast<size_t>(column * k + i)] : 0;
          const int64_t place = ((column / 32) * k + i) * 32 + column % 32;
          if (bytes[static_cast<size_t>(place)] != want) {
            fail("pack_weight_16 N=" + std::to_string(n) + " K=" + std::to_string(k));
            return;
          }
        }
      }
    }
  }
}

constexpr int64_t kRows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 64, 135};
constexpr int64_t kColumns[] = {1, 31, 32, 33, 1536};
constexpr int64_t kDepths[] = {1, 2, 3, 4, 5, 31, 64, 191, 192, 193, 1023, 1024};

// Multiply-adds of the largest problem: enough for every pair of extremes, and the emulator's
// minutes stay few.
constexpr int64_t kLargest = 2000000;

}  // namespace

int main(int argc, char** argv) {
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--list") == 0) {
      for (const Kernel& kernel : kernels()) {
        std::printf("%s %s %s\n", kernel.name, name_of(kernel.requirement),
                    satisfied(kernel.requirement, cpu_features()) ? "available" : "unavailable");
      }
      return 0;
    }
    if (std::strcmp(argv[i], "--kernel") == 0 && i + 1 < argc) {
      only = argv[++i];
    } else {
      std::fprintf(stderr, "usage: kernel_tests [--list] [--kernel NAME]\n");
      return 2;
    }
  }

  check_packing();
  std::vector<const Kernel*> tested;
  for (const Kernel& kernel : kernels()) {
    if ((only.empty() || only == kernel.name) && satisfied(kernel.requirement, cpu_features()))
      tested.push_back(&kernel);
  }
  int64_t cases = 0;
  std::map<std::string, int64_t> cases_of;
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const int64_t m : kRows) {
    for (const int64_t n : kColumns) {
      for (const int64_t k : kDepths) {
        if (m * n * k > kLargest) continue;
        const Problem problem = random_problem(m, n, k, (m + n + k) % 2 == 0);
        const std::vector<Interval> bounds = reference(problem);
        std::vector<uint16_t> first;
        for (const Kernel* kernel : tested) {
          if (!accepts_rows(*kernel, m)) continue;
          const std::vector<uint16_t> result = run(*kernel, problem);
          check_bounds(*kernel, problem, bounds, result);
          if (first.empty()) first = result;
          expect(result == first,
                 describe(*kernel, problem) + ": differs from the kernel before it");
          ++cases;
          ++cases_of[kernel->name];
        }
        hash = fnv1a(first, hash);
      }
    }
  }
  for (const Kernel* kernel : tested) {
    const int64_t rows = kernel->tile.rows == 0 ? 8 : kernel->tile.rows;
    check_special_values(*kernel, rows);
    check_rounding(*kernel, rows);
  }

  std::string kernels_text;
  for (const auto& [name, count] : cases_of) {
    char text[160];
    std::snprintf(text, sizeof text, "%s\"%s\": %lld", kernels_text.empty() ? "" : ", ",
                  name.c_str(), static_cast<long long>(count));
    kernels_text += text;
  }
  std::string dispatch;
  for (const int64_t m : kRows) {
    dispatch += (dispatch.empty() ? "\"" : ", \"") + std::to_string(m) + "\": \"" +
                select_packed_linear(m, cpu_features())->name + "\"";
  }
  std::printf(
      "{\"vlen_bits\": %lld, \"rvv\": %s, \"cases\": %lld, \"failures\": %d, \"hash\": "
      "\"%016llx\", \"kernels\": {%s}, "
      "\"dispatch\": {%s}}\n",
      static_cast<long long>(cpu_features().vlen_bits), cpu_features().rvv ? "true" : "false",
      static_cast<long long>(cases), failures, static_cast<unsigned long long>(hash),
      kernels_text.c_str(), dispatch.c_str());
  return failures == 0 ? 0 : 1;
}
