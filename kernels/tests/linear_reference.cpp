#include "linear_reference.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace sgl_rvv::tests {
namespace {

// Products that the reference of one problem may compute; of larger problems it checks a part.
constexpr int64_t kReferenceProducts = 30000;

std::vector<double> values(const Format& format, const std::vector<uint16_t>& bits) {
  static std::map<Type, std::vector<double>> tables;
  std::vector<double>& table = tables[format.type];
  for (size_t i = table.size(); i < 0x10000; ++i) {
    table.push_back(format.value(static_cast<uint16_t>(i)));
  }
  std::vector<double> converted;
  converted.reserve(bits.size());
  for (const uint16_t value : bits) converted.push_back(table[value]);
  return converted;
}

// The output that `a` at [row, 2] of mat1 and `b` at [column, 2] of the weight make, all else zero.
uint16_t single(const Kernel& kernel, int64_t rows, uint16_t a, uint16_t b, int64_t row,
                int64_t column, const RunLinear& run) {
  LinearProblem problem{format_of(kernel.left), rows, 33, 5, {}, {}, {}};
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

}  // namespace

LinearProblem random_linear(const Format& format, int64_t m, int64_t n, int64_t k, bool with_bias) {
  Random random(static_cast<uint64_t>(((m * 4099) + n) * 4099 + k) * 2 + (with_bias ? 1 : 0));
  LinearProblem problem{format, m, n, k, {}, {}, {}};
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

std::string describe(const LinearProblem& problem) {
  return "M=" + std::to_string(problem.m) + " N=" + std::to_string(problem.n) +
         " K=" + std::to_string(problem.k) + (problem.bias.empty() ? "" : " bias");
}

std::vector<Interval> reference(const LinearProblem& problem, int64_t depth) {
  const Format& format = problem.format;
  const double factor = gamma(depth);
  const int64_t outputs = problem.m * problem.n;
  const int64_t step = std::max<int64_t>(1, outputs * problem.k / kReferenceProducts) | 1;
  const std::vector<double> left = values(format, problem.left);
  const std::vector<double> weight = values(format, problem.weight);
  std::vector<Interval> bounds;
  const auto add = [&](int64_t output) {
    const int64_t row = output / problem.n;
    const int64_t column = output % problem.n;
    const double* a = left.data() + row * problem.k;
    const double* b = weight.data() + column * problem.k;
    double exact = 0.0;
    double magnitude = 0.0;
    for (int64_t i = 0; i < problem.k; ++i) {
      const double product = a[i] * b[i];
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

void check_bounds(const Kernel& kernel, const LinearProblem& problem,
                  const std::vector<Interval>& bounds, const std::vector<uint16_t>& result) {
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

void check_special_values(const Kernel& kernel, int64_t rows, const RunLinear& run) {
  const Format& format = format_of(kernel.left);
  const std::string name = kernel.name;
  const uint16_t one = format.round(1.0);
  const uint16_t minus = format.round(-1.0);
  const uint16_t infinity = format.infinity;
  const uint16_t largest = format.round(format.largest);
  for (const int64_t column : {0, 1, 15, 16, 31, 32}) {
    const int64_t row = rows - 1;
    const auto times = [&](uint16_t a, uint16_t b) {
      return single(kernel, rows, a, b, row, column, run);
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
void check_ties(const Kernel& kernel, int64_t rows, const RunLinear& run) {
  const Format& format = format_of(kernel.left);
  const uint16_t one = format.round(1.0);
  for (const bool upper : {false, true}) {
    LinearProblem problem{format, rows, 34, 2, {}, {}, {}};
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

GuardedOutput::GuardedOutput(int64_t m, int64_t n, Fence fence)
    : m_(m),
      n_(n),
      stride_(n + 3 + (n % 2)),
      memory_(std::vector<uint16_t>(static_cast<size_t>(stride_ * (m - 1) + n), kGuard), fence) {}

bool GuardedOutput::untouched(int64_t end) const {
  for (int64_t row = 0; row < m_; ++row) {
    const uint16_t* begin = data() + row * stride_;
    if (!std::all_of(begin, begin + end, [](uint16_t value) { return value == kGuard; })) {
      return false;
    }
  }
  return true;
}

std::vector<uint16_t> GuardedOutput::take(const std::string& who) const {
  std::vector<uint16_t> result;
  expect(memory_.intact(), who + ": wrote beside the output");
  for (int64_t row = 0; row < m_; ++row) {
    const uint16_t* begin = data() + row * stride_;
    result.insert(result.end(), begin, begin + n_);
    for (int64_t column = n_; row + 1 < m_ && column < stride_; ++column) {
      expect(begin[column] == kGuard, who + ": wrote after a row");
    }
  }
  return result;
}

}  // namespace sgl_rvv::tests
