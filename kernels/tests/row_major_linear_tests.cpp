// Every row-major linear of the registry against float64 (linear_reference.h). A product goes
// through the additions of its partial sum (of 16 or 32), those of the tree, and the bias's.
//
// The order of additions is the same in all kernels of a type, so they agree to the last bit, at
// every VLEN and on every architecture.

#include <cstring>
#include <string>
#include <vector>

#include "harness.h"
#include "linear_reference.h"

namespace sgl_rvv::tests {

void test_row_major_linear();

namespace {

// Runs `kernel` column range by column range. All operands end at fences, or begin there where
// `fence` says so. `gap` elements lie between the rows of the weight.
std::vector<uint16_t> run(const Kernel& kernel, const LinearProblem& problem, Fence fence,
                          int64_t gap) {
  run_case(kernel, describe(problem));
  const std::string who = std::string(kernel.name) + " " + describe(problem);
  const int64_t stride = problem.k + gap;
  // Without the last gap: the last row ends at the fence.
  const Fenced<uint16_t> weight(
      std::vector<uint16_t>(static_cast<size_t>((problem.n - 1) * stride + problem.k), 0x7fff),
      fence);
  for (int64_t row = 0; row < problem.n; ++row) {
    for (int64_t i = 0; i < problem.k; ++i) {
      weight.data()[row * stride + i] = problem.weight[static_cast<size_t>(row * problem.k + i)];
    }
  }
  const size_t element = kernel.prepared_left == Type::kFp32 ? sizeof(float) : sizeof(uint16_t);
  const FencedBytes left(static_cast<size_t>(problem.m * row_major_depth(problem.k)) * element,
                         fence);
  std::memset(left.data(), 0xff, left.size());  // NaN: what is not prepared shows, even times 0
  const Fenced<uint16_t> rows(problem.left, fence);
  prepare_row_major_left(kernel.left, kernel.prepared_left, rows.data(), problem.k, problem.k, 0,
                         problem.m, left.data());
  const Fenced<float> bias(problem.bias, fence);
  const GuardedOutput out(problem.m, problem.n, fence);
  const RowMajorLinear call = {problem.m,
                               problem.n,
                               problem.k,
                               left.data(),
                               weight.data(),
                               stride,
                               problem.bias.empty() ? nullptr : bias.data(),
                               out.data(),
                               out.stride()};
  const int64_t half = problem.n / 2;
  const auto entry = std::get<RowMajorLinearKernel*>(kernel.entry);
  entry(call, half, problem.n);
  expect(out.untouched(half), who + ": wrote columns it was not given");
  entry(call, 0, half);
  expect(weight.intact() && left.intact() && bias.intact(), who + ": wrote beside an operand");
  return out.take(who);
}

constexpr int64_t kRows[] = {1, 2, 3, 5, 8, 64};
constexpr int64_t kColumns[] = {1, 3, 4, 5, 37, 512};
constexpr int64_t kDepths[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 64, 95, 1023, 1024};
constexpr int64_t kLargest = 500000;

void check_type(Type type) {
  const Format& format = format_of(type);
  const std::string group = std::string("row_major_linear_") + name_of(type);
  const std::vector<const Kernel*> tested = runnable(Operation::kRowMajorLinear, type);
  const int64_t sums = type == Type::kBf16 ? 16 : 32;
  const int64_t levels = type == Type::kBf16 ? 4 : 5;
  for (const int64_t m : kRows) {
    for (const int64_t n : kColumns) {
      for (const int64_t k : kDepths) {
        if (m * n * k > kLargest || tested.empty()) continue;
        const LinearProblem problem = random_linear(format, m, n, k, (m + n + k) % 2 == 0);
        const std::vector<Interval> bounds = reference(problem, (k + sums - 1) / sums + levels + 1);
        std::vector<uint16_t> first;
        for (const Kernel* kernel : tested) {
          // Gaps of 0 to 3: rows that are aligned to 2 bytes, to 4, and by turns.
          const Fence fence = n % 2 == 0 ? Fence::kAfter : Fence::kBefore;
          const std::vector<uint16_t> result = run(*kernel, problem, fence, m % 4);
          check_bounds(*kernel, problem, bounds, result);
          if (first.empty()) first = result;
          expect(result == first, std::string(kernel->name) + " " + describe(problem) +
                                      ": differs from the kernel before it");
        }
        mix_hash(group, first.data(), first.size() * sizeof first[0]);
      }
    }
  }
  const RunLinear run_fenced = [](const Kernel& kernel, const LinearProblem& problem) {
    return run(kernel, problem, Fence::kAfter, 0);
  };
  for (const Kernel* kernel : tested) {
    for (const int64_t rows : {1, 2, 3}) {
      check_special_values(*kernel, rows, run_fenced);
      check_ties(*kernel, rows, run_fenced);
    }
  }
  note_dispatch(group, "1", select_kernel(Operation::kRowMajorLinear, type, 1, cpu_features()));
}

}  // namespace

void test_row_major_linear() {
  check_type(Type::kBf16);
  check_type(Type::kFp16);
}

}  // namespace sgl_rvv::tests
