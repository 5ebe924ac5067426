// Row-major linear in plain C++, any M. Requires nothing. Compiled with -ffp-contract=off, so that
// every architecture gives the same bits.

#include <algorithm>

#include "core/bf16.h"
#include "core/fp16.h"
#include "core/kernels_portable.h"
#include "core/partial_sums.h"

namespace sgl_rvv {
namespace {

constexpr int64_t kHalf = kGroupDepth / 2;

struct Bf16 {
  static constexpr int64_t kSums = kHalf;

  static void add(float* sums, const float* left, const uint16_t* weight) {
    for (int64_t i = 0; i < kHalf; ++i) {
      sums[i] += left[i] * bf16_to_float(weight[2 * i]);
      sums[i] += left[kHalf + i] * bf16_to_float(weight[2 * i + 1]);
    }
  }

  static uint16_t round(float sum) { return float_to_bf16(sum); }
};

struct Fp16 {
  static constexpr int64_t kSums = kGroupDepth;

  static void add(float* sums, const float* left, const uint16_t* weight) {
    for (int64_t i = 0; i < kHalf; ++i) {
      sums[2 * i] += left[i] * fp16_to_float(weight[2 * i]);
      sums[2 * i + 1] += left[kHalf + i] * fp16_to_float(weight[2 * i + 1]);
    }
  }

  static uint16_t round(float sum) { return float_to_fp16(sum); }
};

template <class Format>
float dot(const float* left, const uint16_t* weight, int64_t k) {
  float sums[Format::kSums] = {};
  int64_t i = 0;
  for (; i + kGroupDepth <= k; i += kGroupDepth) Format::add(sums, left + i, weight + i);
  if (i < k) {
    uint16_t rest[kGroupDepth] = {};
    std::copy(weight + i, weight + k, rest);
    Format::add(sums, left + i, rest);
  }
  return sum_tree<Format::kSums>(sums);
}

template <class Format>
void linear(const RowMajorLinear& call, int64_t column_begin, int64_t column_end) {
  const int64_t depth = row_major_depth(call.k);
  for (int64_t column = column_begin; column < column_end; ++column) {
    const uint16_t* weight = call.weight + column * call.weight_stride;
    for (int64_t row = 0; row < call.m; ++row) {
      float sum = dot<Format>(static_cast<const float*>(call.left) + row * depth, weight, call.k);
      if (call.bias != nullptr) sum += call.bias[column];
      call.out[row * call.out_stride + column] = Format::round(sum);
    }
  }
}

}  // namespace

void row_major_linear_bf16_portable(const RowMajorLinear& call, int64_t column_begin,
                                    int64_t column_end) {
  linear<Bf16>(call, column_begin, column_end);
}

void row_major_linear_fp16_portable(const RowMajorLinear& call, int64_t column_begin,
                                    int64_t column_end) {
  linear<Fp16>(call, column_begin, column_end);
}

}  // namespace sgl_rvv
