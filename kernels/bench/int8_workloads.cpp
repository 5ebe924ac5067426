// int8_linear: m, n, k, extreme; token_quant: m, k. A call of int8_linear is the whole of
// int8_scaled_mm_with_quant: it quantises BF16 activations, prepares the codes and multiplies.
//
// How fast int8_linear is depends on the activations (int8_linear.h). They are about normally
// distributed, the largest of 2003 having the code 127; with `extreme=1` all codes are +-127, the
// slowest that quantisation gives.

#include <algorithm>
#include <cstring>
#include <memory>
#include <variant>
#include <vector>

#include "choice.h"
#include "core/bf16.h"
#include "core/int8_linear.h"
#include "core/packed_layout.h"
#include "core/token_quant.h"
#include "operand.h"
#include "workloads.h"

namespace kernel_bench {
namespace {

using namespace sgl_rvv;

struct Int8Operands {
  std::vector<uint16_t> rows, out;
  std::vector<int8_t> codes, prepared, weight;
  std::vector<float> left_scales, weight_scales;
  std::vector<Int8Run> runs;
};

// `first` again and again.
template <class Element>
std::vector<Element> periodic(const std::vector<Element>& first, int64_t count) {
  std::vector<Element> values(static_cast<size_t>(count));
  for (size_t done = 0; done < values.size(); done += first.size()) {
    const size_t more = std::min(first.size(), values.size() - done);
    std::memcpy(values.data() + done, first.data(), more * sizeof(Element));
  }
  return values;
}

// Sums of 12 numbers between -0.5 and 0.5 have a standard deviation of 1 (Irwin-Hall).
uint16_t normal(uint32_t& state) {
  float sum = 0.0F;
  for (int i = 0; i < 12; ++i) {
    state = state * 1664525U + 1013904223U;
    sum += static_cast<float>(state >> 8) * 0x1p-24F - 0.5F;
  }
  return float_to_bf16(sum);
}

std::vector<uint16_t> activations(int64_t count, bool extreme) {
  constexpr int kPeriod = 2003;  // prime: rows differ
  std::vector<uint16_t> values;
  uint32_t state = 12345;
  for (int i = 0; i < kPeriod; ++i) {
    const uint16_t value = normal(state);
    values.push_back(extreme ? static_cast<uint16_t>((value & 0x8000U) | 0x3f80U) : value);
  }
  return periodic(values, count);
}

std::vector<int8_t> weights(int64_t count) {
  constexpr int kPeriod = 251;
  std::vector<int8_t> values;
  for (int i = 0; i < kPeriod; ++i) values.push_back(static_cast<int8_t>(i * 97 % 255 - 127));
  return periodic(values, count);
}

}  // namespace

Workload int8_linear(const Case& of) {
  const int64_t m = number(of, "m"), n = number(of, "n"), k = number(of, "k");
  const Kernel* kernel = kernel_of(of, Operation::kInt8Linear, Type::kInt8, m);
  const Kernel* quant = select_kernel(Operation::kTokenQuant, Type::kBf16, m, cpu_features());
  auto operands = std::make_shared<Int8Operands>();
  operands->rows = activations(m * k, number_or(of, "extreme", 2) == 1);
  operands->out.resize(static_cast<size_t>(m * n));
  operands->codes.resize(static_cast<size_t>(m * k));
  operands->prepared.resize(static_cast<size_t>(int8_codes(m, k)));
  operands->runs.resize(static_cast<size_t>(int8_runs(m, k)));
  operands->weight = weights(packed_elements(n, k));
  operands->left_scales.resize(static_cast<size_t>(m));
  operands->weight_scales.assign(static_cast<size_t>(n), 0.01F);
  return {kernel->name, m * n * k, [=] {
            const TokenQuant rows = {k, operands->rows.data(), k, operands->codes.data(),
                                     operands->left_scales.data()};
            (*std::get<TokenQuantKernel*>(quant->entry))(rows, 0, m);
            for (int64_t tile = 0; tile < int8_tiles(m); ++tile) {
              prepare_int8_left(operands->codes.data() + tile * int8_tile_rows(m) * k, k, m, k,
                                tile, operands->prepared.data(), operands->runs.data());
            }
            const Int8Linear call = {m,
                                     n,
                                     k,
                                     operands->prepared.data(),
                                     operands->runs.data(),
                                     operands->left_scales.data(),
                                     operands->weight.data(),
                                     operands->weight_scales.data(),
                                     nullptr,
                                     operands->out.data(),
                                     Type::kBf16,
                                     n};
            (*std::get<Int8LinearKernel*>(kernel->entry))(call, 0, packed_blocks(n));
          }};
}

Workload token_quant(const Case& of) {
  const int64_t m = number(of, "m"), k = number(of, "k");
  const Type type = type_of(of);
  const Kernel* kernel = kernel_of(of, Operation::kTokenQuant, type, m);
  auto operands = std::make_shared<Int8Operands>();
  operands->rows = type == Type::kBf16 ? activations(m * k, false) : operand(type, m * k);
  operands->codes.resize(static_cast<size_t>(m * k));
  operands->left_scales.resize(static_cast<size_t>(m));
  const auto call = [=] {
    const TokenQuant rows = {k, operands->rows.data(), k, operands->codes.data(),
                             operands->left_scales.data()};
    (*std::get<TokenQuantKernel*>(kernel->entry))(rows, 0, m);
  };
  return {kernel->name, 0, call, m * k};
}

}  // namespace kernel_bench
