// Every packed linear of the registry against float64.
//
// The bound. A kernel's FP32 sum of K products differs from the exact sum r by at most
//   e = gamma(K + 1) * (sum |a_k b_k| + |bias|)
// (K additions and the bias; the products of two BF16 or two FP16 are exact in FP32). Rounding to
// the output's type is monotonic, so the result lies between round(r - e) and round(r + e): for
// nearly all outputs that is one value, and a truncating store or a lost product shows.
//
// Because products are exact and every kernel adds in the order of k, all kernels agree to the last
// bit; the hash of their results must be the same at every VLEN and on every architecture.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/pack_weight.h"
#include "core/packed_layout.h"
#include "harness.h"

namespace sgl_rvv::tests {

void test_packed_linear();

namespace {

constexpr uint16_t kGuard = 0x7bcd;  // between the rows of an output: what is written there shows

// Products that the reference of one problem may compute; of larger problems it checks a part.
constexpr int64_t kReferenceProducts = 30000;

struct Problem {
  const Format& format;
  int64_t m, n, k;
  std::vector<uint16_t> left;    // [m, k]
  std::vector<uint16_t> weight;  // [n, k]
  std::vector<float> bias;       // [n], or empty
};

Problem random_problem(const Format& format, int64_t m, int64_t n, int64_t k, bool with_bias) {
  Random random(static_cast<uint64_t>(((m * 4099) + n) * 4099 + k) * 2 + (with_bias ? 1 : 0));
  Problem problem{format, m, n, k, {}, {}, {}};
  problem.left.resize(static_cast<size_t>(m * k));
  problem.weight.resize(static_cast<size_t>(n * k));
  for (auto& value : problem.left) value = format.round(random.value());
  for (auto& value : problem.weight) value = format.round(random.value());
  if (with_bias) {
    problem.bias.resize(static_cast<size_t>(n));
    for (auto& value : problem.bias) value = random.value() * 3.0F;
  }
  return problem;
}

std::string describe(const Problem& problem) {
  return "M=" + std::to_string(problem.m) + " N=" + std::to_string(problem.n) +
         " K=" + std::to_string(problem.k) + (problem.bias.empty() ? "" : " bias");
}

std::vector<uint16_t> packed(const Problem& problem) {
  std::vector<uint16_t> out(static_cast<size_t>(packed_elements(problem.n, problem.k)), kGuard);
  pack_weight_16(problem.weight.data(), problem.k, problem.n, problem.k, 0,
                 packed_blocks(problem.n), out.data());
  return out;
}

// Runs `kernel` block range by block range, into rows with guards between them; returns [m, n]. All
// operands end at fences, or begin there where `fence` says so.
std::vector<uint16_t> run(const Kernel& kernel, const Problem& problem,
                          Fence fence = Fence::kAfter) {
  const std::string what = describe(problem);
  run_case(kernel, what);
  const Fenced<uint16_t> weight(packed(problem), fence);
  const Fenced<float> left(static_cast<size_t>(left_elements(problem.m, problem.k)), fence);
  const Fenced<uint16_t> rows(problem.left, fence);
  prepare_left_bf16(rows.data(), problem.k, problem.m, problem.k, 0, left_tiles(problem.m),
                    left.data());
  const bool with_bias = !problem.bias.empty();
  const Fenced<float> bias(static_cast<size_t>(with_bias ? bias_elements(problem.n) : 0), fence);
  if (with_bias) prepare_bias(problem.bias.data(), problem.n, bias.data());
  // An odd stride: rows are then aligned to 2 bytes and no more.
  const int64_t stride = problem.n + 3 + (problem.n % 2);
  const auto size = static_cast<size_t>(stride * (problem.m - 1) + problem.n);
  const Fenced<uint16_t> out(std::vector<uint16_t>(size, kGuard), fence);
  const PackedLinear call = {problem.m,   problem.n,     problem.k,
                             left.data(), weight.data(), with_bias ? bias.data() : nullptr,
                             out.data(),  stride};
  const int64_t blocks = packed_blocks(problem.n);
  const int64_t half = blocks / 2;
  const auto entry = std::get<PackedLinearKernel*>(kernel.entry);
  entry(call, half, blocks);
  const std::string name = std::string(kernel.name) + " " + what;
  for (int64_t column = 0; column < std::min(half * kBlockColumns, problem.n); ++column) {
    expect(out.data()[column] == kGuard, name + ": wrote a block it was not given");
    if (out.data()[column] != kGuard) break;
  }
  entry(call, 0, half);

  std::vector<uint16_t> result;
  expect(out.intact(), name + ": wrote beside the output");
  for (int64_t row = 0; row < problem.m; ++row) {
    const uint16_t* begin = out.data() + row * stride;
    result.insert(result.end(), begin, begin + problem.n);
    for (int64_t column = problem.n; row + 1 < problem.m && column < stride; ++column) {
      expect(begin[column] == kGuard, name + ": wrote after a row");
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
  const Format& format = problem.format;
  const double factor = gamma(problem.k + 1);
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
      const double product = format.value(a[i]) * format.value(b[i]);
      exact += product;
      magnitude += std::fabs(product);
    }
    if (!problem.bias.empty()) {
      const double bias = static_cast<double>(problem.bias[static_cast<size_t>(column)]);
      exact += bias;
      magnitude += std::fabs(bias);
    }
    const double error = factor * magnitude;
    bounds.push_back({row, column, format.order(format.round(exact - error)),
                      format.order(format.round(exact + error))});
  };
  for (int64_t output = 0; output < outputs; output += step) add(output);
  for (const int64_t corner : {problem.n - 1, outputs - problem.n, outputs - 1}) add(corner);
  return bounds;
}

void check_bounds(const Kernel& kernel, const Problem& problem, const std::vector<Interval>& bounds,
                  const std::vector<uint16_t>& result) {
  const Format& format = problem.format;
  for (const Interval& bound : bounds) {
    const uint16_t got = result[static_cast<size_t>(bound.row * problem.n + bound.column)];
    if (format.is_nan(got) || format.order(got) < bound.lowest ||
        format.order(got) > bound.highest) {
      fail(std::string(kernel.name) + " " + describe(problem) + " at [" +
           std::to_string(bound.row) + ", " + std::to_string(bound.column) + "]: got " +
           std::to_string(format.value(got)));
      return;
    }
  }
}

uint16_t single(const Kernel& kernel, int64_t rows, uint16_t a, uint16_t b, int64_t row,
                int64_t column) {
  Problem problem{format_of(kernel.left), rows, 33, 5, {}, {}, {}};
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
  const Format& format = format_of(kernel.left);
  const std::string name = kernel.name;
  const uint16_t one = format.round(1.0);
  const uint16_t minus = format.round(-1.0);
  const uint16_t infinity = format.infinity;
  const uint16_t largest = format.round(format.largest);
  for (const int64_t column : {0, 1, 15, 16, 31, 32}) {
    const int64_t row = rows - 1;
    const auto times = [&](uint16_t a, uint16_t b) {
      return single(kernel, rows, a, b, row, column);
    };
    expect(format.is_nan(times(format.nan, one)), name + ": NaN in mat1 was lost");
    expect(format.is_nan(times(one, 0xffff)), name + ": NaN in the weight was lost");
    // A payload in the lowest bit only: it must not round away into infinity.
    expect(format.is_nan(times(one, infinity | 1)), name + ": signalling NaN was lost");
    expect(times(infinity, one) == infinity, name + ": inf * 1");
    expect(times(minus, infinity) == (infinity | 0x8000), name + ": -1 * inf");
    expect(format.is_nan(times(infinity, 0)), name + ": inf * 0 is NaN");
    expect(times(largest, largest) == infinity, name + ": overflow");
    expect(times(largest, one) == largest, name + ": the largest number");
    expect(times(0x0001, one) == 0x0001, name + ": the smallest number");
    expect(times(minus, 0x0003) == 0x8003, name + ": a negative subnormal");
  }
}

// Ties: with p significant bits 1 + 2^-p lies midway between 1 and its successor 1 + 2^(1 - p), and
// 1 + 3 * 2^-p between that and 1 + 2^(2 - p). To even: 1 and 1 + 2^(2 - p).
void check_rounding(const Kernel& kernel, int64_t rows) {
  const Format& format = format_of(kernel.left);
  const uint16_t one = format.round(1.0);
  for (const bool upper : {false, true}) {
    Problem problem{format, rows, 34, 2, {}, {}, {}};
    const double rest = std::ldexp(upper ? 3.0 : 1.0, -format.significant_bits);
    for (int64_t row = 0; row < rows; ++row) {
      problem.left.push_back(one);
      problem.left.push_back(format.round(rest));
    }
    problem.weight.assign(34 * 2, one);
    const auto right = static_cast<uint16_t>(one + (upper ? 2 : 0));
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

void check_packing() {
  for (const int64_t n : {1, 31, 32, 33, 70}) {
    for (const int64_t k : {1, 2, 31, 33, 100}) {
      const Problem problem = random_problem(kBf16Format, 1, n, k, false);
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

void check_type(Type type) {
  const Format& format = format_of(type);
  const std::string group = std::string("packed_linear_") + name_of(type);
  const std::vector<const Kernel*> tested = runnable(Operation::kPackedLinear, type);
  for (const int64_t m : kRows) {
    for (const int64_t n : kColumns) {
      for (const int64_t k : kDepths) {
        if (m * n * k > kLargest) continue;
        const Problem problem = random_problem(format, m, n, k, (m + n + k) % 2 == 0);
        const std::vector<Interval> bounds = reference(problem);
        std::vector<uint16_t> first;
        for (const Kernel* kernel : tested) {
          if (!accepts_rows(*kernel, m)) continue;
          const Fence fence = k % 2 == 0 ? Fence::kAfter : Fence::kBefore;
          const std::vector<uint16_t> result = run(*kernel, problem, fence);
          check_bounds(*kernel, problem, bounds, result);
          if (first.empty()) first = result;
          expect(result == first, std::string(kernel->name) + " " + describe(problem) +
                                      ": differs from the kernel before it");
        }
        mix_hash(group, first.data(), first.size() * sizeof first[0]);
      }
    }
  }
  for (const Kernel* kernel : tested) {
    const int64_t rows = kernel->tile.rows == 0 ? 8 : kernel->tile.rows;
    check_special_values(*kernel, rows);
    check_rounding(*kernel, rows);
  }
  for (const int64_t m : kRows) {
    note_dispatch(group, std::to_string(m),
                  select_kernel(Operation::kPackedLinear, type, m, cpu_features()));
  }
}

}  // namespace

void test_packed_linear() {
  check_packing();
  check_type(Type::kBf16);
}

}  // namespace sgl_rvv::tests
