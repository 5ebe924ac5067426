// What the tests of packed and row-major linears share: problems, and what float64 allows.
//
// The bound. A kernel's FP32 sum differs from the exact sum r by at most
//   e = gamma(depth) * (sum |a_k b_k| + |bias|)
// where depth is the number of additions that one product goes through, the bias's among them (the
// products of two BF16 or two FP16 are exact in FP32). Rounding to the output's type is monotonic,
// so the result lies between round(r - e) and round(r + e): for nearly all outputs that is one
// value, and a truncating store or a lost product shows.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness.h"

namespace sgl_rvv::tests {

constexpr uint16_t kGuard = 0x7bcd;  // between the rows of an output: what is written there shows

struct LinearProblem {
  const Format& format;
  int64_t m, n, k;
  std::vector<uint16_t> left;    // [m, k]
  std::vector<uint16_t> weight;  // [n, k]
  std::vector<float> bias;       // [n], or empty
};

[[nodiscard]] LinearProblem random_linear(const Format& format, int64_t m, int64_t n, int64_t k,
                                          bool with_bias);
[[nodiscard]] std::string describe(const LinearProblem& problem);

// What the float64 reference allows an output to be.
struct Interval {
  int64_t row, column;
  int lowest, highest;  // in Format::order()
};

// The bounds of all outputs, or, of a large problem, of an evenly spread choice that holds its
// corners. `depth`: see above.
[[nodiscard]] std::vector<Interval> reference(const LinearProblem& problem, int64_t depth);

void check_bounds(const Kernel& kernel, const LinearProblem& problem,
                  const std::vector<Interval>& bounds, const std::vector<uint16_t>& result);

// Computes a problem with a kernel: [m, n].
using RunLinear = std::function<std::vector<uint16_t>(const Kernel&, const LinearProblem&)>;

// Infinities, NaNs, subnormals, overflow; each must reach its own outputs and no other.
void check_special_values(const Kernel& kernel, int64_t rows, const RunLinear& run);

// Results midway between two numbers go to the even one.
void check_ties(const Kernel& kernel, int64_t rows, const RunLinear& run);

// An output [m, n] in rows with guards between them. The row stride is odd, so that rows are
// aligned to 2 bytes and no more.
class GuardedOutput {
 public:
  GuardedOutput(int64_t m, int64_t n, Fence fence);
  [[nodiscard]] uint16_t* data() const { return memory_.data(); }
  [[nodiscard]] int64_t stride() const { return stride_; }
  // Whether no output of columns [0, end) has been written (rows that happen to hold the guard
  // count as unwritten).
  [[nodiscard]] bool untouched(int64_t end) const;
  // The result, after checking that nothing beside it was written.
  [[nodiscard]] std::vector<uint16_t> take(const std::string& who) const;

 private:
  int64_t m_, n_, stride_;
  Fenced<uint16_t> memory_;
};

}  // namespace sgl_rvv::tests
