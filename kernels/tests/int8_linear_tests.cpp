// Every INT8 linear of the registry against int64 and float64.
//
// Sums are exact: with all scales 1 and FP32 outputs a result is the int64 sum, rounded once to
// FP32. With scales s = left * weight it goes through four roundings to FP32 and the one to the
// output's type, which is monotonic: it lies between round(r - e) and round(r + e) with r the exact
// value and e = gamma(4) * (|sum| s + |bias|). All kernels give the same bits, and the hash of the
// results must be the same at every VLEN and on every architecture.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/int8_linear.h"
#include "core/pack_weight.h"
#include "core/packed_layout.h"
#include "harness.h"
#include "rounding_modes.h"

namespace sgl_rvv::tests {

void test_int8_linear();

namespace {

constexpr unsigned char kUnwritten = 0xa5;  // what FencedBytes are filled with

struct Problem {
  int64_t m, n, k;
  std::vector<int8_t> left;    // [m, k]
  std::vector<int8_t> weight;  // [n, k]
  std::vector<float> left_scales, weight_scales;
  std::vector<float> bias;  // [n], or empty
  Type out = Type::kFp32;
};

// How activations are distributed, which decides the groups.
enum class Codes { kAny, kSmall, kMostlySmall, kExtremes, kLowest, kPairs };
constexpr Codes kAllCodes[] = {Codes::kAny,      Codes::kSmall,  Codes::kMostlySmall,
                               Codes::kExtremes, Codes::kLowest, Codes::kPairs};

int8_t random_code(Random& random, Codes codes) {
  switch (codes) {
    case Codes::kAny:
      return static_cast<int8_t>(random.below(256) - 128);
    case Codes::kSmall:
      return static_cast<int8_t>(random.below(127) - 63);
    case Codes::kMostlySmall:
      return random_code(random, random.below(20) == 0 ? Codes::kExtremes : Codes::kSmall);
    case Codes::kExtremes:
      return random.below(2) == 0 ? -128 : 127;
    case Codes::kLowest:
      return -128;
    case Codes::kPairs:
      return random.below(2) == 0 ? -127 : 127;
  }
  return 0;
}

// Scales are 1 and there is no bias.
Problem plain(int64_t m, int64_t n, int64_t k, Codes codes, Codes weights) {
  Random random(static_cast<uint64_t>((m * 4099 + n) * 4099 + k) * 8 +
                static_cast<uint64_t>(codes));
  Problem problem{m, n, k, {}, {}, {}, {}, {}, Type::kFp32};
  for (int64_t i = 0; i < m * k; ++i) problem.left.push_back(random_code(random, codes));
  for (int64_t i = 0; i < n * k; ++i) problem.weight.push_back(random_code(random, weights));
  problem.left_scales.assign(static_cast<size_t>(m), 1.0F);
  problem.weight_scales.assign(static_cast<size_t>(n), 1.0F);
  return problem;
}

Problem scaled(Problem problem, Type out, bool with_bias) {
  Random random(static_cast<uint64_t>(problem.m + problem.n + problem.k));
  for (float& scale : problem.left_scales) scale = std::fabs(random.value()) * 0x1p-7F + 0x1p-12F;
  for (float& scale : problem.weight_scales) scale = std::fabs(random.value()) * 0x1p-7F + 0x1p-12F;
  if (with_bias) {
    for (int64_t i = 0; i < problem.n; ++i) problem.bias.push_back(random.value() * 3.0F);
  }
  problem.out = out;
  return problem;
}

std::string describe(const Problem& problem) {
  return "M=" + std::to_string(problem.m) + " N=" + std::to_string(problem.n) +
         " K=" + std::to_string(problem.k) + " " + name_of(problem.out) +
         (problem.bias.empty() ? "" : " bias");
}

int64_t exact_sum(const Problem& problem, int64_t row, int64_t column) {
  int64_t sum = 0;
  for (int64_t i = 0; i < problem.k; ++i) {
    sum += int64_t{problem.left[static_cast<size_t>(row * problem.k + i)]} *
           int64_t{problem.weight[static_cast<size_t>(column * problem.k + i)]};
  }
  return sum;
}

size_t bytes_of(Type type) {
  return type == Type::kFp32 ? sizeof(float) : sizeof(uint16_t);
}

// Bytes of the outputs [m, n]. All operands end at fences, or begin there where `fence` says so.
std::vector<unsigned char> run(const Kernel& kernel, const Problem& problem, Fence fence) {
  run_case(kernel, describe(problem));
  const std::string who = std::string(kernel.name) + " " + describe(problem);
  const Fenced<int8_t> weight(static_cast<size_t>(packed_elements(problem.n, problem.k)), fence);
  pack_weight_8(problem.weight.data(), problem.k, problem.n, problem.k, 0, packed_blocks(problem.n),
                weight.data());
  const Fenced<int8_t> rows(problem.left, fence);
  const Fenced<int8_t> codes(static_cast<size_t>(int8_codes(problem.m, problem.k)), fence);
  const Fenced<Int8Run> runs(static_cast<size_t>(int8_runs(problem.m, problem.k)), fence);
  const int64_t tile_rows = int8_tile_rows(problem.m);
  for (int64_t tile = 0; tile < int8_tiles(problem.m); ++tile) {
    prepare_int8_left(rows.data() + tile * tile_rows * problem.k, problem.k, problem.m, problem.k,
                      tile, codes.data(), runs.data());
  }
  const Fenced<float> left_scales(problem.left_scales, fence);
  const Fenced<float> weight_scales(problem.weight_scales, fence);
  const Fenced<float> bias(problem.bias, fence);
  const size_t element = bytes_of(problem.out);
  const int64_t stride = problem.n + 3;
  const FencedBytes out(static_cast<size_t>((problem.m - 1) * stride + problem.n) * element, fence);
  const Int8Linear call = {problem.m,
                           problem.n,
                           problem.k,
                           codes.data(),
                           runs.data(),
                           left_scales.data(),
                           weight.data(),
                           weight_scales.data(),
                           problem.bias.empty() ? nullptr : bias.data(),
                           out.data(),
                           problem.out,
                           stride};
  const auto row_bytes = [&](int64_t row) {
    return out.data() + static_cast<size_t>(row * stride) * element;
  };
  const auto unwritten = [](unsigned char byte) { return byte == kUnwritten; };
  const int64_t blocks = packed_blocks(problem.n);
  const int64_t half = blocks / 2;
  const auto before = static_cast<size_t>(std::min(half * kBlockColumns, problem.n)) * element;
  const auto entry = std::get<Int8LinearKernel*>(kernel.entry);
  entry(call, half, blocks);
  for (int64_t row = 0; row < problem.m; ++row) {
    expect(std::all_of(row_bytes(row), row_bytes(row) + before, unwritten),
           who + ": wrote a block it was not given");
  }
  entry(call, 0, half);
  expect(weight.intact() && codes.intact() && runs.intact() && left_scales.intact() &&
             weight_scales.intact() && bias.intact() && out.intact(),
         who + ": wrote beside an operand");
  std::vector<unsigned char> result;
  const auto width = static_cast<size_t>(problem.n) * element;
  for (int64_t row = 0; row < problem.m; ++row) {
    result.insert(result.end(), row_bytes(row), row_bytes(row) + width);
    if (row + 1 < problem.m) {
      expect(std::all_of(row_bytes(row) + width, row_bytes(row + 1), unwritten),
             who + ": wrote after a row");
    }
  }
  return result;
}

double value_at(const Problem& problem, const std::vector<unsigned char>& result, int64_t place) {
  const unsigned char* bytes = result.data() + static_cast<size_t>(place) * bytes_of(problem.out);
  if (problem.out == Type::kFp32) {
    float value;
    std::memcpy(&value, bytes, sizeof value);
    return static_cast<double>(value);
  }
  uint16_t bits;
  std::memcpy(&bits, bytes, sizeof bits);
  return format_of(problem.out).value(bits);
}

double rounded_to(Type type, double value) {
  if (type == Type::kFp32) return static_cast<double>(static_cast<float>(value));
  return format_of(type).value(format_of(type).round(value));
}

// Outputs of a large problem that are checked: an evenly spread choice with its corners.
std::vector<int64_t> checked_places(const Problem& problem) {
  constexpr int64_t kProducts = 60000;
  const int64_t outputs = problem.m * problem.n;
  const int64_t step = std::max<int64_t>(1, outputs * problem.k / kProducts) | 1;
  std::vector<int64_t> places = {problem.n - 1, outputs - problem.n, outputs - 1};
  for (int64_t place = 0; place < outputs; place += step) places.push_back(place);
  return places;
}

void check_values(const std::string& who, const Problem& problem,
                  const std::vector<unsigned char>& result) {
  for (const int64_t place : checked_places(problem)) {
    const auto row = static_cast<size_t>(place / problem.n);
    const auto column = static_cast<size_t>(place % problem.n);
    const auto sum = static_cast<double>(exact_sum(problem, place / problem.n, place % problem.n));
    const double scale = static_cast<double>(problem.left_scales[row]) *
                         static_cast<double>(problem.weight_scales[column]);
    const double bias = problem.bias.empty() ? 0.0 : static_cast<double>(problem.bias[column]);
    // With scales of 1 and no bias the only rounding is that of the sum.
    const bool plain = scale == 1.0 && problem.bias.empty();
    const double error = plain ? 0.0 : gamma(4) * (std::fabs(sum * scale) + std::fabs(bias));
    const double exact = sum * scale + bias;
    const double got = value_at(problem, result, place);
    if (!(got >= rounded_to(problem.out, exact - error) &&
          got <= rounded_to(problem.out, exact + error))) {
      fail(who + " " + describe(problem) + " at [" + std::to_string(row) + ", " +
           std::to_string(column) + "]: got " + std::to_string(got) + ", exact " +
           std::to_string(exact));
      return;
    }
  }
}

const std::string kGroup = "int8_linear";

// Every kernel that takes so many rows, against the reference and each other.
void check(const Problem& problem) {
  std::vector<unsigned char> first;
  for (const Kernel* kernel : runnable(Operation::kInt8Linear, Type::kInt8)) {
    if (!accepts_rows(*kernel, problem.m)) continue;
    const Fence fence = problem.k % 2 == 0 ? Fence::kAfter : Fence::kBefore;
    const std::vector<unsigned char> result = run(*kernel, problem, fence);
    if (first.empty()) {
      check_values(kernel->name, problem, result);
      first = result;
    }
    expect(result == first, std::string(kernel->name) + " " + describe(problem) +
                                ": differs from the kernel before it");
  }
  if (!first.empty()) mix_hash(kGroup, first.data(), first.size());
}

void check_packing() {
  for (const int64_t n : {1, 32, 33, 70}) {
    for (const int64_t k : {1, 31, 33, 100}) {
      const Problem problem = plain(1, n, k, Codes::kAny, Codes::kAny);
      std::vector<int8_t> bytes(static_cast<size_t>(packed_elements(n, k)), 77);
      pack_weight_8(problem.weight.data(), k, n, k, 0, packed_blocks(n), bytes.data());
      for (int64_t column = 0; column < packed_blocks(n) * kBlockColumns; ++column) {
        for (int64_t i = 0; i < k; ++i) {
          const int8_t want = column < n ? problem.weight[static_cast<size_t>(column * k + i)] : 0;
          const int64_t place = ((column / 32) * k + i) * 32 + column % 32;
          if (bytes[static_cast<size_t>(place)] != want) {
            fail("pack_weight_8 N=" + std::to_string(n) + " K=" + std::to_string(k));
            return;
          }
        }
      }
    }
  }
}

// The runs of a tile are the largest groups that the definition allows, and cover the whole quads.
void check_runs() {
  constexpr int64_t kDepth = 300;
  for (const Codes codes : kAllCodes) {
    const Problem problem = plain(2, 1, kDepth, codes, Codes::kAny);
    std::vector<int8_t> prepared(static_cast<size_t>(int8_codes(2, kDepth)));
    std::vector<Int8Run> runs(static_cast<size_t>(int8_runs(2, kDepth)));
    prepare_int8_left(problem.left.data(), kDepth, 2, kDepth, 0, prepared.data(), runs.data());
    const auto magnitude = [&](int64_t begin, int64_t count) {
      int largest = 0;
      for (int64_t row = 0; row < 2; ++row) {
        int sum = 0;
        for (int64_t i = begin; i < begin + count; ++i) {
          sum += std::abs(int{problem.left[static_cast<size_t>(row * kDepth + i)]});
        }
        largest = std::max(largest, sum);
      }
      return largest;
    };
    bool right = true;
    for (int64_t panel = 0; panel < int8_panels(kDepth); ++panel) {
      const int64_t begin = panel * kInt8PanelDepth;
      const Int8Run* run = runs.data() + panel * kPanelQuads;
      int left_of_run = run->quads;
      for (int64_t k = begin; k + kQuad <= std::min(begin + kInt8PanelDepth, kDepth); k += kQuad) {
        if (left_of_run == 0) left_of_run = (++run)->quads;
        --left_of_run;
        int group = 1;
        if (magnitude(k, 2) <= 255 && magnitude(k + 2, 2) <= 255) group = 2;
        if (magnitude(k, 4) <= 255) group = 4;
        right = right && run->group == group;
      }
      right = right && left_of_run == 0;
    }
    expect(right,
           "prepare_int8_left: wrong runs for codes " + std::to_string(static_cast<int>(codes)));
  }
}

constexpr int64_t kRows[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 64, 135};
constexpr int64_t kColumns[] = {1, 31, 32, 33, 256};
constexpr int64_t kDepths[] = {1, 2, 3, 4, 5, 8, 31, 64, 255, 256, 257, 300, 1023, 1024};
constexpr int64_t kLargest = 500000;
constexpr Type kOutputs[] = {Type::kBf16, Type::kFp16, Type::kFp32};

void check_shapes() {
  int64_t turn = 0;
  for (const int64_t m : kRows) {
    for (const int64_t n : kColumns) {
      for (const int64_t k : kDepths) {
        if (m * n * k > kLargest) continue;
        const Codes codes = kAllCodes[turn % 6];
        check(scaled(plain(m, n, k, codes, Codes::kAny), kOutputs[turn % 3], turn % 2 == 0));
        ++turn;
      }
    }
  }
}

// All operands -128, all 127, and both by turns, at the largest K of the models: sums are exact.
// In pairs -128 * -128 twice is 32768, which 16 bits do not hold.
void check_extremes() {
  constexpr int64_t kDepth = 8960;
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 9}) {
    for (const Codes codes :
         {Codes::kLowest, Codes::kExtremes, Codes::kPairs, Codes::kMostlySmall}) {
      for (const Codes weights : {Codes::kLowest, Codes::kExtremes}) {
        check(plain(m, 33, kDepth, codes, weights));
      }
    }
  }
  // Columns that sum up as much as there is: 8960 * 2^14 is a number of FP32.
  const Problem lowest = plain(1, 1, kDepth, Codes::kLowest, Codes::kLowest);
  expect(exact_sum(lowest, 0, 0) == kDepth << 14, "the reference's sum");
  // The deepest K that is allowed.
  check(plain(1, 1, kInt8LargestDepth, Codes::kLowest, Codes::kLowest));
  check(plain(1, 1, kInt8LargestDepth, Codes::kExtremes, Codes::kLowest));
}

// A scale that is NaN or infinite reaches its row or column and no other; what is too large becomes
// infinite; ties go to even.
void check_special_values() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const Type out : kOutputs) {
    for (const int64_t m : {2, 7}) {
      Problem problem = plain(m, 34, 5, Codes::kLowest, Codes::kLowest);
      problem.out = out;
      problem.left_scales[1] = kNaN;
      problem.weight_scales[33] = kInfinity;
      problem.weight_scales[2] = kNaN;
      problem.weight_scales[3] = 0x1p127F;
      for (const Kernel* kernel : runnable(Operation::kInt8Linear, Type::kInt8)) {
        if (!accepts_rows(*kernel, m)) continue;
        const std::vector<unsigned char> result = run(*kernel, problem, Fence::kAfter);
        const auto at = [&](int64_t row, int64_t column) {
          return value_at(problem, result, row * 34 + column);
        };
        const std::string who = std::string(kernel->name) + " " + name_of(out);
        expect(at(0, 0) == 81920.0 || (out == Type::kFp16 && at(0, 0) == HUGE_VAL),
               who + ": a sum");
        expect(at(0, 33) == HUGE_VAL && at(0, 3) == HUGE_VAL, who + ": infinity");
        expect(std::isnan(at(0, 2)), who + ": NaN of a column");
        for (int64_t column = 0; column < 34; ++column) {
          expect(std::isnan(at(1, column)), who + ": NaN of a row");
          expect(column == 2 || !std::isnan(at(0, column)), who + ": NaN leaked");
        }
      }
    }
    if (out == Type::kFp32) continue;
    // 2^p + 1 and 2^p + 3 lie midway between numbers of p significant bits.
    const int bits = format_of(out).significant_bits;
    for (const int more : {1, 3}) {
      Problem problem = plain(1, 2, 18, Codes::kLowest, Codes::kLowest);
      problem.out = out;
      problem.left.assign(18,
                          static_cast<int8_t>(1 << (bits - 5)));  // 16 times 2 times this is 2^p
      problem.left[16] = 1;
      problem.left[17] = 0;
      for (size_t i = 0; i < 36; ++i) {
        problem.weight[i] = i % 18 < 16 ? 2 : static_cast<int8_t>(i < 18 ? more : -more);
      }
      for (size_t i = 18; i < 34; ++i) problem.weight[i] = -2;
      const double even = std::ldexp(1.0, bits) + (more == 3 ? 4.0 : 0.0);
      for (const Kernel* kernel : runnable(Operation::kInt8Linear, Type::kInt8)) {
        if (!accepts_rows(*kernel, 1)) continue;
        const std::vector<unsigned char> result = run(*kernel, problem, Fence::kAfter);
        expect(value_at(problem, result, 0) == even && value_at(problem, result, 1) == -even,
               std::string(kernel->name) + " " + name_of(out) + ": a tie was not rounded to even");
      }
    }
  }
}

void check_rounding_modes() {
  for (const Type out : kOutputs) {
    for (const int64_t m : {1, 2, 3, 4, 5, 6, 9}) {
      const Problem problem = scaled(plain(m, 40, 70, Codes::kAny, Codes::kAny), out, true);
      for (const Kernel* kernel : runnable(Operation::kInt8Linear, Type::kInt8)) {
        if (!accepts_rows(*kernel, m)) continue;
        const std::vector<unsigned char> wanted = run(*kernel, problem, Fence::kAfter);
        under_every_rounding_mode([&](const std::string& mode) {
          expect(run(*kernel, problem, Fence::kAfter) == wanted,
                 std::string(kernel->name) + " " + describe(problem) + ": other bits, " + mode);
        });
      }
    }
  }
}

}  // namespace

void test_int8_linear() {
  check_packing();
  check_runs();
  check_shapes();
  check_extremes();
  check_special_values();
  check_rounding_modes();
  for (const int64_t m : kRows) {
    note_dispatch(kGroup, std::to_string(m),
                  select_kernel(Operation::kInt8Linear, Type::kInt8, m, cpu_features()));
  }
}

}  // namespace sgl_rvv::tests
