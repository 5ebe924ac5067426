// FP16 row-major linear, RVV 1.0 with Zvfh: vectors along K, several rows of the weight at a time,
// widening multiply-adds into 32 FP32 sums an output. A tile is one row by four columns, or two by
// two: a loaded row of the weight serves two rows, a loaded row of the left operand two columns.
//
// The weight is read from memory once: its rows stay in L1 while all rows of the left operand use
// them. Groups are LMUL 2 (sums LMUL 4): at VLEN 128 a tile is done in two halves of 16 elements.
//
// Requires V, Zfh, Zvfh. Alignment: 2 bytes. Modelled: see kernels/README.md.

#include <riscv_vector.h>

#include "core/kernels_rvv.h"
#include "core/partial_sums.h"

namespace sgl_rvv {
namespace {

using Half = _Float16;
using Row = vfloat16m2_t;
using Sums = vfloat32m4_t;

constexpr int64_t kSums = kGroupDepth;

// Sums [Rows][Columns][kSums] of elements [first, first + vl) of each group. `weight` points at the
// first of `Columns` rows, `left` at the first of `Rows` rows. Rows * Columns <= 4.
template <int Rows, int Columns>
void accumulate(const Half* left, int64_t depth, const Half* weight, int64_t stride, int64_t k,
                int64_t first, size_t vl, float* sums) {
  const Sums zero = __riscv_vfmv_v_f_f32m4(0.0F, vl);
  Sums s0 = zero, s1 = zero, s2 = zero, s3 = zero;
  const Half* x = left + first;
  const Half* y = left + (Rows - 1) * depth + first;
  const Half* w0 = weight + first;
  const Half* w1 = w0 + (Columns > 1 ? stride : 0);
  const Half* w2 = w1 + (Columns > 2 ? stride : 0);
  const Half* w3 = w2 + (Columns > 3 ? stride : 0);
  const auto add = [&](auto load) {
    const Row a = __riscv_vle16_v_f16m2(x, vl);
    const Row w = load(w0);
    s0 = __riscv_vfwmacc_vv_f32m4(s0, a, w, vl);
    if constexpr (Rows == 1) {
      if constexpr (Columns > 1) s1 = __riscv_vfwmacc_vv_f32m4(s1, a, load(w1), vl);
      if constexpr (Columns > 2) s2 = __riscv_vfwmacc_vv_f32m4(s2, a, load(w2), vl);
      if constexpr (Columns > 3) s3 = __riscv_vfwmacc_vv_f32m4(s3, a, load(w3), vl);
    } else {
      const Row b = __riscv_vle16_v_f16m2(y, vl);
      s2 = __riscv_vfwmacc_vv_f32m4(s2, b, w, vl);
      if constexpr (Columns > 1) {
        const Row v = load(w1);
        s1 = __riscv_vfwmacc_vv_f32m4(s1, a, v, vl);
        s3 = __riscv_vfwmacc_vv_f32m4(s3, b, v, vl);
      }
    }
  };
  for (; k >= kGroupDepth; k -= kGroupDepth) {
    add([vl](const Half* w)
            __attribute__((always_inline)) { return __riscv_vle16_v_f16m2(w, vl); });
    x += kGroupDepth;
    y += kGroupDepth;
    w0 += kGroupDepth;
    w1 += kGroupDepth;
    w2 += kGroupDepth;
    w3 += kGroupDepth;
  }
  if (k > first) {
    const int64_t rest = k - first;
    const size_t count = rest < static_cast<int64_t>(vl) ? static_cast<size_t>(rest) : vl;
    add([vl, count](const Half* w) __attribute__((always_inline)) {
      return __riscv_vle16_v_f16m2_tu(__riscv_vfmv_v_f_f16m2(Half{0}, vl), w, count);
    });
  }
  const auto store = [&](int64_t place, Sums sum) {
    __riscv_vse32_v_f32m4(sums + place * kSums + first, sum, vl);
  };
  store(0, s0);
  if constexpr (Columns > 1) store(1, s1);
  if constexpr (Rows == 1 && Columns > 2) store(2, s2);
  if constexpr (Rows == 1 && Columns > 3) store(3, s3);
  if constexpr (Rows > 1) store(Columns, s2);
  if constexpr (Rows > 1 && Columns > 1) store(Columns + 1, s3);
}

template <int Rows, int Columns>
void tile(const RowMajorLinear& call, int64_t row, int64_t column) {
  alignas(64) float sums[Rows * Columns * kSums];
  const int64_t depth = row_major_depth(call.k);
  const Half* left = static_cast<const Half*>(call.left) + row * depth;
  const Half* weight = reinterpret_cast<const Half*>(call.weight) + column * call.weight_stride;
  for (int64_t first = 0; first < kGroupDepth;) {
    const size_t vl = __riscv_vsetvl_e16m2(static_cast<size_t>(kGroupDepth - first));
    accumulate<Rows, Columns>(left, depth, weight, call.weight_stride, call.k, first, vl, sums);
    first += static_cast<int64_t>(vl);
  }
  Half* out = reinterpret_cast<Half*>(call.out) + row * call.out_stride + column;
  for (int64_t i = 0; i < Rows; ++i) {
    for (int64_t j = 0; j < Columns; ++j) {
      float sum = sum_tree<kSums>(sums + (i * Columns + j) * kSums);
      if (call.bias != nullptr) sum += call.bias[column + j];
      out[i * call.out_stride + j] = static_cast<Half>(sum);
    }
  }
}

}  // namespace

void row_major_linear_fp16_along_k_zvfh_rvv(const RowMajorLinear& call, int64_t column_begin,
                                            int64_t column_end) {
  int64_t column = column_begin;
  for (; column + 4 <= column_end; column += 4) {
    int64_t row = 0;
    for (; row + 2 <= call.m; row += 2) {
      tile<2, 2>(call, row, column);
      tile<2, 2>(call, row, column + 2);
    }
    if (row < call.m) tile<1, 4>(call, row, column);
  }
  for (; column < column_end; ++column) {
    int64_t row = 0;
    for (; row + 2 <= call.m; row += 2) tile<2, 1>(call, row, column);
    if (row < call.m) tile<1, 1>(call, row, column);
  }
}

}  // namespace sgl_rvv
