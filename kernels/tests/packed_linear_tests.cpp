// Every packed linear of the registry against float64 (linear_reference.h; a product goes through K
// additions and the bias's).
//
// Because products are exact and every kernel adds in the order of k, all kernels agree to the last
// bit; the hash of their results must be the same at every VLEN and on every architecture.

#include <algorithm>
#include <string>
#include <vector>

#include "core/pack_weight.h"
#include "core/packed_layout.h"
#include "harness.h"
#include "linear_reference.h"

namespace sgl_rvv::tests {

void test_packed_linear();

namespace {

std::vector<uint16_t> packed(const LinearProblem& problem) {
  std::vector<uint16_t> out(static_cast<size_t>(packed_elements(problem.n, problem.k)), kGuard);
  pack_weight_16(problem.weight.data(), problem.k, problem.n, problem.k, 0,
                 packed_blocks(problem.n), out.data());
  return out;
}

// Runs `kernel` block range by block range. All operands end at fences, or begin there where
// `fence` says so.
std::vector<uint16_t> run(const Kernel& kernel, const LinearProblem& problem, Fence fence) {
  run_case(kernel, describe(problem));
  const std::string who = std::string(kernel.name) + " " + describe(problem);
  const Fenced<uint16_t> weight(packed(problem), fence);
  const size_t element = kernel.prepared_left == Type::kFp32 ? sizeof(float) : sizeof(uint16_t);
  const FencedBytes left(static_cast<size_t>(left_elements(problem.m, problem.k)) * element, fence);
  const Fenced<uint16_t> rows(problem.left, fence);
  prepare_left(kernel.left, kernel.prepared_left, rows.data(), problem.k, problem.m, problem.k, 0,
               left_tiles(problem.m), left.data());
  const bool with_bias = !problem.bias.empty();
  const Fenced<float> bias(static_cast<size_t>(with_bias ? bias_elements(problem.n) : 0), fence);
  if (with_bias) {
    prepare_bias(problem.bias.data(), problem.n, bias.data());
    expect(std::all_of(bias.data() + problem.n, bias.data() + bias_elements(problem.n),
                       [](float value) { return value == 0.0F; }),
           who + ": the bias is not padded with zeros");
  }
  const GuardedOutput out(problem.m, problem.n, fence);
  const PackedLinear call = {problem.m,   problem.n,     problem.k,
                             left.data(), weight.data(), with_bias ? bias.data() : nullptr,
                             out.data(),  out.stride()};
  const int64_t blocks = packed_blocks(problem.n);
  const int64_t half = blocks / 2;
  const auto entry = std::get<PackedLinearKernel*>(kernel.entry);
  entry(call, half, blocks);
  expect(out.untouched(std::min(half * kBlockColumns, problem.n)),
         who + ": wrote a block it was not given");
  entry(call, 0, half);
  expect(weight.intact() && left.intact() && bias.intact(), who + ": wrote beside an operand");
  return out.take(who);
}

void check_packing() {
  for (const int64_t n : {1, 31, 32, 33, 70}) {
    for (const int64_t k : {1, 2, 31, 33, 100}) {
      const LinearProblem problem = random_linear(kBf16Format, 1, n, k, false);
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
constexpr int64_t kLargest = 1000000;

void check_type(Type type) {
  const Format& format = format_of(type);
  const std::string group = std::string("packed_linear_") + name_of(type);
  const std::vector<const Kernel*> tested = runnable(Operation::kPackedLinear, type);
  for (const int64_t m : kRows) {
    for (const int64_t n : kColumns) {
      for (const int64_t k : kDepths) {
        if (m * n * k > kLargest || tested.empty()) continue;
        const LinearProblem problem = random_linear(format, m, n, k, (m + n + k) % 2 == 0);
        const std::vector<Interval> bounds = reference(problem, k + 1);
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
  const RunLinear run_fenced = [](const Kernel& kernel, const LinearProblem& problem) {
    return run(kernel, problem, Fence::kAfter);
  };
  for (const Kernel* kernel : tested) {
    const int64_t rows = kernel->tile.rows == 0 ? 8 : kernel->tile.rows;
    check_special_values(*kernel, rows, run_fenced);
    check_ties(*kernel, rows, run_fenced);
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
  check_type(Type::kFp16);
}

}  // namespace sgl_rvv::tests
