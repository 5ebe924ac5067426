// Every norm of the registry against float64, and to the last bit against the other kernels of its
// type, shared out by blocks or not.
//
// The bounds, with g(n) = gamma(n), N columns and `depth` = N / 32 + blocks + 8 additions that a
// term of a sum goes through:
//   RMS    the sum of squares is within g(depth) of itself, so its root's reciprocal within half of
//          that; with the sum with the residual, the root, the division and the products: g(depth +
//          8) of the result. silu() is within 2^-18 of itself.
//   Layer  the mean is off by at most m = g(depth) mean(|x|), a deviation by d = m + g(2) (|x| +
//          |mean|), the variance by g(depth) and 3 d / sigma of itself, and so on.
// What is below 2^-110 before it is multiplied by the weight is off by 2^-133.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "harness.h"
#include "row_operands.h"

namespace sgl_rvv::tests {

void test_norm();

namespace {

struct NormProblem {
  NormKind kind;
  bool residual, bias;
  int64_t rows, columns;
  double offset;  // of the input
};

const char* name_of_kind(NormKind kind) {
  switch (kind) {
    case NormKind::kRms:
      return "rms";
    case NormKind::kRmsWeight:
      return "rms weight";
    case NormKind::kRmsOnePlusWeight:
      return "rms 1 + weight";
    case NormKind::kRmsGated:
      return "rms gated";
    case NormKind::kLayer:
      return "layer";
  }
  return "?";
}

std::string describe(const NormProblem& problem) {
  return std::string(name_of_kind(problem.kind)) + (problem.residual ? " residual" : "") +
         (problem.bias ? " bias" : "") + " " + std::to_string(problem.rows) + " x " +
         std::to_string(problem.columns);
}

struct NormOperands {
  NormProblem problem;
  Type type;
  RowOperand input, residual, gate, weight, bias, out;

  NormOperands(Type of, const NormProblem& p, int64_t gap, Fence fence)
      : problem(p),
        type(of),
        input(of, p.rows, p.columns, gap, fence),
        residual(of, p.rows, p.columns, gap, fence),
        gate(of, p.rows, p.columns, gap, fence),
        weight(of, 1, p.columns, 0, fence),
        bias(of, 1, p.columns, 0, fence),
        out(of, p.rows, p.columns, gap, fence) {
    Random random(static_cast<uint64_t>(p.columns * 31 + p.rows));
    input.fill(random);
    for (int64_t row = 0; p.offset != 0.0 && row < p.rows; ++row) {
      for (int64_t i = 0; i < p.columns; ++i) input.set(row, i, input.get(row, i) + p.offset);
    }
    residual.fill(random);
    gate.fill(random, 3.0);
    weight.fill(random);
    bias.fill(random);
  }

  // Into the input where there is a residual, as the fused operators do.
  [[nodiscard]] const RowOperand& result() const { return problem.residual ? input : out; }

  void run(const Kernel& kernel, bool shared) const {
    run_case(kernel, describe(problem));
    const bool weighted = problem.kind != NormKind::kRms;
    const Norm call = {problem.kind,
                       problem.columns,
                       input.data(),
                       input.stride(),
                       problem.residual ? residual.data() : nullptr,
                       residual.stride(),
                       problem.kind == NormKind::kRmsGated ? gate.data() : nullptr,
                       gate.stride(),
                       weighted ? weight.data() : nullptr,
                       problem.bias ? bias.data() : nullptr,
                       result().data(),
                       result().stride(),
                       1e-5F};
    const Fenced<float> scratch(static_cast<size_t>(norm_scratch_floats(problem.columns)));
    const auto entry = std::get<NormKernel*>(kernel.entry);
    if (shared) {
      const int64_t blocks = norm_blocks(problem.columns);
      for (const NormStage stage : {NormStage::kSums, NormStage::kDeviations, NormStage::kFinish}) {
        if (stage == NormStage::kDeviations && problem.kind != NormKind::kLayer) continue;
        for (int64_t block = blocks - 1; block >= 0; --block) {
          entry(call, stage, block, block + 1, scratch.data());
        }
      }
    } else {
      entry(call, NormStage::kRows, 1, problem.rows, scratch.data());
      entry(call, NormStage::kRows, 0, 1, scratch.data());
    }
    expect(input.intact() && residual.intact() && gate.intact() && weight.intact() &&
               bias.intact() && out.intact() && scratch.intact(),
           std::string(kernel.name) + " " + describe(problem) + ": wrote beside an operand");
  }
};

double silu_of(double x) {
  return x / (1.0 + std::exp(-x));
}

// Holds `done` against float64 on what `before` was before the kernel ran.
void check(const Kernel& kernel, const NormOperands& before, const NormOperands& done) {
  const NormProblem& problem = before.problem;
  const auto columns = static_cast<double>(problem.columns);
  const int64_t depth = problem.columns / 32 + norm_blocks(problem.columns) + 8;
  const std::string who = std::string(kernel.name) + " " + describe(problem);
  for (int64_t row = 0; row < problem.rows; ++row) {
    std::vector<double> x;
    double sum = 0.0, size = 0.0, squares = 0.0;
    for (int64_t i = 0; i < problem.columns; ++i) {
      const double value = before.input.get(row, i);
      const double add = problem.residual ? before.residual.get(row, i) : 0.0;
      x.push_back(value + add);
      if (problem.residual) {
        expect_within(before.type, done.residual.get(row, i), x.back(),
                      gamma(1) * std::fabs(x.back()), who + ": residual");
      }
      sum += x.back();
      size += std::fabs(x.back());
      squares += x.back() * x.back();
    }
    const bool layer = problem.kind == NormKind::kLayer;
    const double mean = layer ? sum / columns : 0.0;
    if (layer) {
      squares = 0.0;
      for (const double value : x) squares += (value - mean) * (value - mean);
    }
    const double sigma = std::sqrt(squares / columns + static_cast<double>(1e-5F));
    const double mean_error = gamma(depth) * size / columns;
    double relative = gamma(depth + 8);
    if (layer)
      relative += 3.0 * (mean_error + gamma(2) * (size / columns + std::fabs(mean))) / sigma;
    if (problem.kind == NormKind::kRmsGated) relative += 0x1p-18;
    for (int64_t i = 0; i < problem.columns; ++i) {
      const double value = x[static_cast<size_t>(i)];
      double factor = before.weight.get(0, i);
      if (problem.kind == NormKind::kRms) factor = 1.0;
      if (problem.kind == NormKind::kRmsOnePlusWeight) factor += 1.0;
      if (problem.kind == NormKind::kRmsGated) factor *= silu_of(before.gate.get(row, i));
      const double scaled = (value - mean) / sigma * factor;
      const double bias = problem.bias ? before.bias.get(0, i) : 0.0;
      double error = relative * std::fabs(scaled) + gamma(2) * std::fabs(scaled + bias) +
                     gamma(1) * std::fabs(bias) + 0x1p-133 * std::fabs(factor);
      if (layer) {
        error += (mean_error + gamma(2) * (std::fabs(value) + std::fabs(mean))) / sigma *
                 std::fabs(factor);
      }
      expect_within(before.type, done.result().get(row, i), scaled + bias, error,
                    who + " at [" + std::to_string(row) + ", " + std::to_string(i) + "]");
    }
  }
}

void check_problem(Type type, const std::vector<const Kernel*>& tested, const NormProblem& problem,
                   const std::string& group) {
  std::vector<unsigned char> first;
  const Fence fence = problem.columns % 2 == 0 ? Fence::kAfter : Fence::kBefore;
  const int64_t gap = problem.rows % 4;
  const NormOperands before(type, problem, gap, fence);
  for (const Kernel* kernel : tested) {
    for (const bool shared : {false, true}) {
      if (shared && problem.rows > 1) continue;
      const NormOperands done(type, problem, gap, fence);
      done.run(*kernel, shared);
      if (!shared) check(*kernel, before, done);
      // The exponential and the reciprocal in silu() are not the same everywhere.
      if (problem.kind == NormKind::kRmsGated) continue;
      std::vector<unsigned char> result = done.result().bytes();
      const std::vector<unsigned char> residual = done.residual.bytes();
      result.insert(result.end(), residual.begin(), residual.end());
      if (first.empty()) first = result;
      expect(result == first, std::string(kernel->name) + " " + describe(problem) +
                                  (shared ? " shared out" : "") + ": differs");
    }
  }
  mix_hash(group, first.data(), first.size());
}

// NaN and infinities stay in their row; what is too large for a quick store is stored rightly.
void check_special_values(const Kernel& kernel, Type type) {
  const std::string name = kernel.name;
  const double infinity = HUGE_VAL;
  const double largest = round_to(type, type == Type::kFp16 ? 60000.0 : 3e38);
  for (const bool residual : {false, true}) {
    for (const int64_t column : {0, 1, 17, 69}) {
      NormOperands ones(type, {NormKind::kRmsWeight, residual, false, 3, 70, 0.0}, 1,
                        Fence::kAfter);
      for (int64_t row = 0; row < 3; ++row) {
        for (int64_t i = 0; i < 70; ++i) {
          ones.input.set(row, i, row == 2 ? -0.5 : 0.5);
          ones.residual.set(row, i, row == 2 ? -0.5 : 0.5);
          ones.weight.set(0, i, 1.0);
        }
      }
      ones.input.set(1, column, std::nan(""));
      ones.weight.set(0, column, infinity);
      ones.weight.set(0, (column + 1) % 70, largest);
      ones.run(kernel, false);
      for (int64_t i = 0; i < 70; ++i) {
        const double up = ones.result().get(0, i);
        const double down = ones.result().get(2, i);
        expect(std::isnan(ones.result().get(1, i)), name + ": a NaN was lost");
        if (residual) {
          expect(ones.residual.get(0, i) == 1.0 && ones.residual.get(2, i) == -1.0,
                 name + ": residual");
          expect(std::isnan(ones.residual.get(1, i)) == (i == column), name + ": residual NaN");
        }
        if (i == column) {
          expect(up == infinity && down == -infinity, name + ": an infinite weight");
        } else if (i == (column + 1) % 70) {
          expect(up > 0.98 * largest && up <= largest && down == -up, name + ": a large weight");
        } else {
          expect(up > 0.98 && up <= 1.0 && down == -up, name + ": a special value leaked");
        }
      }
    }
  }
  // Infinities in the residual's sum, and a sum that overflows.
  NormOperands sums(type, {NormKind::kRmsWeight, true, false, 2, 40, 0.0}, 0, Fence::kAfter);
  sums.input.set(0, 3, infinity);
  sums.input.set(1, 5, largest);
  sums.residual.set(1, 5, largest);
  const double beside = round_to(type, sums.input.get(0, 4) + sums.residual.get(0, 4));
  sums.run(kernel, false);
  expect(sums.residual.get(0, 3) == infinity, name + ": infinity in the residual");
  expect(sums.residual.get(1, 5) == infinity, name + ": overflow in the residual");
  expect(std::fabs(sums.residual.get(0, 4) - beside) <= std::fabs(beside) * 0x1p-7,
         name + ": beside infinity in the residual");
}

constexpr int64_t kColumns[] = {1,  2,   15,  16,  31,   32,   33,   63,  64,
                                65, 100, 511, 513, 2048, 4095, 4096, 4109};

void check_type(Type type) {
  const std::vector<const Kernel*> tested = runnable(Operation::kNorm, type);
  const std::string group = std::string("norm_") + name_of(type);
  if (!tested.empty()) {
    for (const int64_t columns : kColumns) {
      const int64_t rows = columns % 5 == 0 || columns > 4000 ? 1 : 2 + columns % 4;
      for (const bool residual : {false, true}) {
        for (const NormKind kind : {NormKind::kRmsWeight, NormKind::kRms,
                                    NormKind::kRmsOnePlusWeight, NormKind::kRmsGated}) {
          check_problem(type, tested, {kind, residual, false, rows, columns, 0.0}, group);
        }
        for (const bool bias : {false, true}) {
          // A mean far from 0: squares minus the square of the mean would lose the variance.
          const double offset = bias ? 0.0 : type == Type::kFp32 ? 3000.0 : 100.0;
          check_problem(type, tested, {NormKind::kLayer, residual, bias, rows, columns, offset},
                        group);
        }
      }
    }
    for (const Kernel* kernel : tested) check_special_values(*kernel, type);
  }
  note_dispatch(group, "1", select_kernel(Operation::kNorm, type, 1, cpu_features()));
}

}  // namespace

void test_norm() {
  for (const Type type : {Type::kBf16, Type::kFp16, Type::kFp32}) check_type(type);
}

}  // namespace sgl_rvv::tests
