// Every gated activation of the registry against float64: act() within 2^-18 + x^2 2^-23 of itself
// (see core/gated_activation.h), where it ends within 2^-126 of its argument, and two products.

#include <cmath>
#include <string>
#include <vector>

#include "harness.h"
#include "row_operands.h"

namespace sgl_rvv::tests {

void test_gated_activation();

namespace {

constexpr Activation kActivations[] = {Activation::kSilu, Activation::kGelu, Activation::kGeluTanh};

double act(Activation kind, double x) {
  switch (kind) {
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      break;
  }
  const double slope = 2.0 * std::sqrt(2.0 / M_PI);
  return x / (1.0 + std::exp(-slope * (x + 0.044715 * x * x * x)));
}

// Rows of gate and up side by side, as the operators have them.
struct ActivationOperands {
  RowOperand in, out;
  int64_t rows, columns;

  ActivationOperands(Type type, int64_t m, int64_t n, Fence fence)
      : in(type, m, 2 * n, m % 3, fence), out(type, m, n, m % 2, fence), rows(m), columns(n) {}

  void run(const Kernel& kernel, Activation kind) const {
    run_case(kernel, "activation " + std::to_string(static_cast<int>(kind)) + " " +
                         std::to_string(rows) + " x " + std::to_string(columns));
    const auto* gate = static_cast<const unsigned char*>(in.data());
    const GatedActivation call = {
        kind,        columns,    gate,        gate + columns * bytes_of(kernel.left),
        in.stride(), out.data(), out.stride()};
    const auto entry = std::get<GatedActivationKernel*>(kernel.entry);
    const int64_t units = rows * activation_blocks(columns);
    entry(call, units / 2, units);
    entry(call, 0, units / 2);
    expect(in.intact() && out.intact(), std::string(kernel.name) + ": wrote beside an operand");
  }
};

void check_random(const Kernel& kernel, Activation kind, int64_t rows, int64_t columns) {
  const Type type = kernel.left;
  ActivationOperands operands(type, rows, columns,
                              columns % 2 == 0 ? Fence::kAfter : Fence::kBefore);
  Random random(static_cast<uint64_t>(rows * 1000 + columns));
  operands.in.fill(random, 5.0);
  operands.run(kernel, kind);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < columns; ++i) {
      const double x = operands.in.get(row, i);
      const double up = operands.in.get(row, columns + i);
      const double exact = act(kind, x) * up;
      expect_within(
          type, operands.out.get(row, i), exact,
          std::fabs(exact) * (0x1p-18 + x * x * 0x1p-23 + gamma(3)) + std::fabs(x * up) * 0x1p-125,
          std::string(kernel.name) + " act(" + std::to_string(x) + ") * " + std::to_string(up));
    }
  }
}

// Arguments over the whole range, the ends among them.
void check_special_values(const Kernel& kernel, Activation kind) {
  const Type type = kernel.left;
  const std::string name = kernel.name;
  const double infinity = HUGE_VAL;
  const double largest = type == Type::kFp16 ? 60000.0 : 3e38;
  const std::vector<double> gates = {0.0,          1e-3, -1e-3,  12.0, -12.0, 40.0,
                                     -40.0,        90.0, -110.0, 1e4,  -1e4,  infinity,
                                     std::nan(""), 1.0,  1.0,    1.0,  1.0,   largest};
  const std::vector<double> ups = {3.0, 1.0,     1.0,      1.0,       1.0,          1.0,
                                   1.0, 1.0,     1.0,      1.0,       1.0,          2.0,
                                   1.0, largest, infinity, -infinity, std::nan(""), 1.0};
  const auto count = static_cast<int64_t>(gates.size());
  ActivationOperands operands(type, 1, count, Fence::kAfter);
  for (int64_t i = 0; i < count; ++i) {
    operands.in.set(0, i, gates[static_cast<size_t>(i)]);
    operands.in.set(0, count + i, ups[static_cast<size_t>(i)]);
  }
  operands.run(kernel, kind);
  for (int64_t i = 0; i < count; ++i) {
    const double x = operands.in.get(0, i);
    const double up = operands.in.get(0, count + i);
    const double exact = act(kind, x) * up;
    const double got = operands.out.get(0, i);
    if (std::isnan(exact) || std::isinf(exact)) {
      expect(std::isnan(exact) ? std::isnan(got) : got == exact,
             name + ": special value " + std::to_string(i) + " gave " + std::to_string(got));
    } else {
      // |x| > 10: the error of an argument of exp() grows with it.
      expect_within(type, got, exact, std::fabs(exact) * 0x1p-14 + std::fabs(x * up) * 0x1p-100,
                    name + ": special value " + std::to_string(i));
    }
  }
}

}  // namespace

void test_gated_activation() {
  for (const Type type : {Type::kBf16, Type::kFp16, Type::kFp32}) {
    for (const Kernel* kernel : runnable(Operation::kGatedActivation, type)) {
      for (const Activation kind : kActivations) {
        for (const int64_t columns : {1, 15, 16, 31, 32, 33, 64, 65, 511, 512, 513, 1100}) {
          check_random(*kernel, kind, 1 + columns % 3, columns);
        }
        check_special_values(*kernel, kind);
      }
    }
    note_dispatch(std::string("gated_activation_") + name_of(type), "1",
                  select_kernel(Operation::kGatedActivation, type, 1, cpu_features()));
  }
}

}  // namespace sgl_rvv::tests
