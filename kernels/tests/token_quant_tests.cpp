// Every quantisation of the registry against float64, which has the definition of token_quant.h
// exactly: the product of two FP32 is exact in it, and a quotient of two FP32 that is rounded to
// float64 and then to FP32 is that which is rounded once (53 >= 2 * 24 + 2 bits). So codes and
// scales must be equal to the bit, under every rounding mode, at every VLEN and everywhere.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/token_quant.h"
#include "harness.h"
#include "rounding_modes.h"

namespace sgl_rvv::tests {

void test_token_quant();

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Quantised {
  std::vector<int8_t> codes;
  std::vector<uint32_t> scales;  // patterns
  bool operator==(const Quantised& other) const {
    return codes == other.codes && scales == other.scales;
  }
};

uint32_t pattern(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// The numbers of `rows` as `type` has them, to nearest.
std::vector<float> rounded(Type type, std::vector<float> rows) {
  if (type == Type::kFp32) return rows;
  const Format& format = format_of(type);
  for (float& value : rows) {
    value = static_cast<float>(format.value(format.round(static_cast<double>(value))));
  }
  return rows;
}

Quantised reference(const std::vector<float>& rows, int64_t m, int64_t k) {
  Quantised wanted;
  for (int64_t row = 0; row < m; ++row) {
    const float* x = rows.data() + row * k;
    const bool has_nan = std::any_of(x, x + k, [](float value) { return std::isnan(value); });
    float largest = kLeastMagnitude;
    for (int64_t i = 0; i < k; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float scale = has_nan ? kNaN : static_cast<float>(static_cast<double>(largest) / 127.0);
    wanted.scales.push_back(has_nan ? 0x7fc00000U : pattern(scale));
    const float factor = static_cast<float>(127.0 / static_cast<double>(largest));
    for (int64_t i = 0; i < k; ++i) {
      double code = 0.0;
      if (has_nan) {
        code = 0.0;
      } else if (std::isinf(x[i])) {
        code = std::copysign(127.0, static_cast<double>(x[i]));
      } else {
        code = std::nearbyint(static_cast<double>(x[i]) * static_cast<double>(factor));
        if (std::isfinite(scale)) {
          const double error =
              std::fabs(static_cast<double>(x[i]) - code * static_cast<double>(scale));
          expect(error <= static_cast<double>(scale) * (0.5 + 0x1p-16),
                 "the definition is too coarse");
        }
      }
      wanted.codes.push_back(static_cast<int8_t>(code));
    }
  }
  return wanted;
}

// Operands that end or begin at fences; `gap` elements of NaN between rows.
Quantised run(const Kernel& kernel, const std::vector<float>& rows, int64_t m, int64_t k,
              Fence fence, int64_t gap, const std::string& what) {
  run_case(kernel, what);
  const std::string who = std::string(kernel.name) + " " + what;
  const size_t element = kernel.left == Type::kFp32 ? sizeof(float) : sizeof(uint16_t);
  const int64_t stride = k + gap;
  const FencedBytes operand(static_cast<size_t>((m - 1) * stride + k) * element, fence);
  std::memset(operand.data(), 0xff, operand.size());
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t i = 0; i < k; ++i) {
      const float value = rows[static_cast<size_t>(row * k + i)];
      unsigned char* place = operand.data() + static_cast<size_t>(row * stride + i) * element;
      if (kernel.left == Type::kFp32) {
        std::memcpy(place, &value, sizeof value);
      } else {
        const Format& format = format_of(kernel.left);
        const uint16_t bits =
            std::isnan(value) ? format.nan : format.round(static_cast<double>(value));
        std::memcpy(place, &bits, sizeof bits);
      }
    }
  }
  const Fenced<int8_t> codes(static_cast<size_t>(m * k), fence);
  const Fenced<float> scales(static_cast<size_t>(m), fence);
  const TokenQuant call = {k, operand.data(), stride, codes.data(), scales.data()};
  const auto entry = std::get<TokenQuantKernel*>(kernel.entry);
  entry(call, m / 2, m);
  entry(call, 0, m / 2);
  expect(operand.intact() && codes.intact() && scales.intact(), who + ": wrote beside an operand");
  Quantised result;
  result.codes.assign(codes.data(), codes.data() + m * k);
  for (int64_t row = 0; row < m; ++row) result.scales.push_back(pattern(scales.data()[row]));
  return result;
}

std::vector<float> random_rows(int64_t m, int64_t k) {
  Random random(static_cast<uint64_t>(m * 4099 + k));
  std::vector<float> rows;
  for (int64_t i = 0; i < m * k; ++i) rows.push_back(random.value());
  return rows;
}

// A row of 40 numbers each: what `first` holds, the rest as `rest` has it.
std::vector<float> special_rows(Type type) {
  const float largest = type == Type::kFp16 ? 65504.0F : 0x1.fep127F;
  const float smallest = type == Type::kFp16 ? 0x1p-24F : 0x1p-133F;
  const std::vector<std::vector<float>> beginnings = {
      {},                                                                        // zeros
      {-0.0F, 0.0F},                                                             //
      {kNaN, 3.0F, kInfinity},                                                   //
      {1.0F, -kInfinity, kInfinity, -2.0F, 0.0F},                                //
      {kInfinity},                                                               //
      {largest, -largest, largest / 2},                                          //
      {smallest, -smallest, 0.0F},                                               //
      {127.0F, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 125.5F, 126.5F, -126.5F},  // ties
      {-127.0F, 63.5F, 0.25F, 0.75F},                                            //
      {1.0F, -1.0F, 1.0F},                                                       //
  };
  std::vector<float> rows;
  for (const std::vector<float>& beginning : beginnings) {
    std::vector<float> row(40, 0.0F);
    std::copy(beginning.begin(), beginning.end(), row.begin());
    rows.insert(rows.end(), row.begin(), row.end());
  }
  // The special number last, where vectors are partly filled.
  for (const float last : {kNaN, kInfinity, -kInfinity, 1000.0F}) {
    std::vector<float> row(40, 1.0F);
    row[39] = last;
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

constexpr int64_t kDepths[] = {1, 2, 3, 15, 16, 31, 32, 33, 63, 64, 65, 127, 129, 255, 1000, 2049};

void check_type(Type type) {
  const std::string group = std::string("token_quant_") + name_of(type);
  const std::vector<const Kernel*> tested = runnable(Operation::kTokenQuant, type);
  const auto check = [&](const std::vector<float>& rows, int64_t m, int64_t k,
                         const std::string& what) {
    const std::vector<float> values = rounded(type, rows);
    const Quantised wanted = reference(values, m, k);
    for (const Kernel* kernel : tested) {
      for (const Fence fence : {Fence::kBefore, Fence::kAfter}) {
        const int64_t gap = fence == Fence::kAfter ? 0 : 3;
        const Quantised got = run(*kernel, values, m, k, fence, gap, what);
        expect(got == wanted, std::string(kernel->name) + " " + what + ": wrong codes or scales");
        if (kernel != tested[0] || gap != 0) continue;
        mix_hash(group, got.codes.data(), got.codes.size());
        mix_hash(group, got.scales.data(), got.scales.size() * sizeof got.scales[0]);
      }
      under_every_rounding_mode([&](const std::string& mode) {
        const Quantised got = run(*kernel, values, m, k, Fence::kAfter, 0, what);
        expect(got == wanted, std::string(kernel->name) + " " + what + ": other codes, " + mode);
      });
    }
  };
  for (const int64_t k : kDepths) check(random_rows(3, k), 3, k, "M=3 K=" + std::to_string(k));
  const std::vector<float> special = special_rows(type);
  check(special, static_cast<int64_t>(special.size() / 40), 40, "special rows");
  note_dispatch(group, "1", select_kernel(Operation::kTokenQuant, type, 1, cpu_features()));
}

}  // namespace

void test_token_quant() {
  check_type(Type::kBf16);
  check_type(Type::kFp16);
  check_type(Type::kFp32);
}

}  // namespace sgl_rvv::tests
