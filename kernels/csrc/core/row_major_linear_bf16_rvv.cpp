// BF16 row-major linear, RVV 1.0: vectors along K, several rows of the weight at a time.
//
// 32 weights of one row are read as 16 lanes of 32 bits; each half becomes an FP32 in its own lane
// (shift, mask), as in npair_rvv.h, and multiplies the left operand's even or odd k. Even and odd
// products go to the same 16 sums, so that an output needs one group of registers and a tile of two
// rows by four columns fits: a converted weight serves two rows, a loaded row of the left operand
// four columns. The sums are added up once per output.
//
// The weight is read from memory once: its four rows stay in L1 while all rows of the left operand
// use them. Groups are LMUL 2: at VLEN 128 a tile is done in two halves of 8 lanes.
//
// Requires V. Rows of the weight that are not 4-byte aligned are read as 16-bit elements.
// Modelled: see kernels/README.md.

#include <riscv_vector.h>

#include "core/all_lanes_rvv.h"
#include "core/bf16.h"
#include "core/bf16_lanes_rvv.h"
#include "core/kernels_rvv.h"
#include "core/partial_sums.h"

namespace sgl_rvv {
namespace {

constexpr int64_t kLanes = kGroupDepth / 2;
constexpr int64_t kTileColumns = 4;
constexpr int64_t kTileRowsOfLeft = 2;

using Float = vfloat32m2_t;
using Bits = vuint32m2_t;
using Mask = vbool16_t;

template <bool Aligned>
inline __attribute__((always_inline)) Bits load_bits(const uint16_t* weight, size_t vl) {
  if constexpr (Aligned) {
    return __riscv_vle32_v_u32m2(reinterpret_cast<const uint32_t*>(weight), vl);
  } else {
    return __riscv_vreinterpret_v_u16m2_u32m2(__riscv_vle16_v_u16m2(weight, 2 * vl));
  }
}

// The first `count` of 2 * vl weights, zeros after them.
inline __attribute__((always_inline)) Bits load_first(const uint16_t* weight, size_t count,
                                                      size_t vl) {
  const vuint16m2_t zeros = __riscv_vmv_v_x_u16m2(0, 2 * vl);
  return __riscv_vreinterpret_v_u16m2_u32m2(__riscv_vle16_v_u16m2_tu(zeros, weight, count));
}

// One weight row's group, for one or two rows of the left operand.
template <int Rows>
inline __attribute__((always_inline)) void add(Float& first, Float& second, Bits bits, Float even0,
                                               Float odd0, Float even1, Float odd1, Mask all,
                                               size_t vl) {
  const Float low = bf16_from_low_half(bits, all, vl);
  const Float high = bf16_from_high_half(bits, all, vl);
  first = __riscv_vfmacc_vv_f32m2(first, even0, low, vl);
  if constexpr (Rows > 1) second = __riscv_vfmacc_vv_f32m2(second, even1, low, vl);
  first = __riscv_vfmacc_vv_f32m2(first, odd0, high, vl);
  if constexpr (Rows > 1) second = __riscv_vfmacc_vv_f32m2(second, odd1, high, vl);
}

// Sums [Rows][Columns][kLanes] of lanes [lane, lane + vl). `weight` points at the first of
// `Columns` rows, `left` at the first of `Rows` rows.
template <int Rows, int Columns, bool Aligned>
void accumulate(const float* left, int64_t depth, const uint16_t* weight, int64_t stride, int64_t k,
                int64_t lane, size_t vl, float* sums) {
  const Mask all = all_lanes(vl);
  const Float zero = __riscv_vfmv_v_f_f32m2(0.0F, vl);
  Float a0 = zero, a1 = zero, a2 = zero, a3 = zero;
  Float b0 = zero, b1 = zero, b2 = zero, b3 = zero;
  const float* x = left + lane;
  const float* y = left + (Rows - 1) * depth + lane;
  const uint16_t* w0 = weight + 2 * lane;
  const uint16_t* w1 = w0 + (Columns > 1 ? stride : 0);
  const uint16_t* w2 = w1 + (Columns > 1 ? stride : 0);
  const uint16_t* w3 = w2 + (Columns > 1 ? stride : 0);
  int64_t left_over = k;
  for (; left_over >= kGroupDepth; left_over -= kGroupDepth) {
    const Float even0 = __riscv_vle32_v_f32m2(x, vl);
    const Float odd0 = __riscv_vle32_v_f32m2(x + kLanes, vl);
    const Float even1 = Rows > 1 ? __riscv_vle32_v_f32m2(y, vl) : even0;
    const Float odd1 = Rows > 1 ? __riscv_vle32_v_f32m2(y + kLanes, vl) : odd0;
    const auto row = [&](Float& first, Float& second, const uint16_t* w) {
      add<Rows>(first, second, load_bits<Aligned>(w, vl), even0, odd0, even1, odd1, all, vl);
    };
    row(a0, b0, w0);
    if constexpr (Columns > 1) row(a1, b1, w1);
    if constexpr (Columns > 1) row(a2, b2, w2);
    if constexpr (Columns > 1) row(a3, b3, w3);
    x += kGroupDepth;
    y += kGroupDepth;
    w0 += kGroupDepth;
    w1 += kGroupDepth;
    w2 += kGroupDepth;
    w3 += kGroupDepth;
  }
  if (left_over > 2 * lane) {
    const int64_t rest = left_over - 2 * lane;
    const size_t count = rest < 2 * static_cast<int64_t>(vl) ? static_cast<size_t>(rest) : 2 * vl;
    const Float even0 = __riscv_vle32_v_f32m2(x, vl);
    const Float odd0 = __riscv_vle32_v_f32m2(x + kLanes, vl);
    const Float even1 = Rows > 1 ? __riscv_vle32_v_f32m2(y, vl) : even0;
    const Float odd1 = Rows > 1 ? __riscv_vle32_v_f32m2(y + kLanes, vl) : odd0;
    const auto row = [&](Float& first, Float& second, const uint16_t* w) {
      add<Rows>(first, second, load_first(w, count, vl), even0, odd0, even1, odd1, all, vl);
    };
    row(a0, b0, w0);
    if constexpr (Columns > 1) row(a1, b1, w1);
    if constexpr (Columns > 1) row(a2, b2, w2);
    if constexpr (Columns > 1) row(a3, b3, w3);
  }
  const auto store = [&](int64_t place, Float sum) {
    __riscv_vse32_v_f32m2(sums + place * kLanes + lane, sum, vl);
  };
  store(0, a0);
  if constexpr (Columns > 1) store(1, a1);
  if constexpr (Columns > 1) store(2, a2);
  if constexpr (Columns > 1) store(3, a3);
  if constexpr (Rows > 1) store(Columns, b0);
  if constexpr (Rows > 1 && Columns > 1) store(Columns + 1, b1);
  if constexpr (Rows > 1 && Columns > 1) store(Columns + 2, b2);
  if constexpr (Rows > 1 && Columns > 1) store(Columns + 3, b3);
}

template <int Rows, int Columns, bool Aligned>
void tile(const RowMajorLinear& call, int64_t row, int64_t column) {
  alignas(64) float sums[Rows * Columns * kLanes];
  const int64_t depth = row_major_depth(call.k);
  const float* left = static_cast<const float*>(call.left) + row * depth;
  const uint16_t* weight = call.weight + column * call.weight_stride;
  for (int64_t lane = 0; lane < kLanes;) {
    const size_t vl = __riscv_vsetvl_e32m2(static_cast<size_t>(kLanes - lane));
    accumulate<Rows, Columns, Aligned>(left, depth, weight, call.weight_stride, call.k, lane, vl,
                                       sums);
    lane += static_cast<int64_t>(vl);
  }
  for (int64_t i = 0; i < Rows; ++i) {
    for (int64_t j = 0; j < Columns; ++j) {
      float sum = sum_tree<kLanes>(sums + (i * Columns + j) * kLanes);
      if (call.bias != nullptr) sum += call.bias[column + j];
      call.out[(row + i) * call.out_stride + column + j] = float_to_bf16(sum);
    }
  }
}

template <int Columns, bool Aligned>
void columns(const RowMajorLinear& call, int64_t column) {
  int64_t row = 0;
  for (; row + kTileRowsOfLeft <= call.m; row += kTileRowsOfLeft) {
    tile<2, Columns, Aligned>(call, row, column);
  }
  if (row < call.m) tile<1, Columns, Aligned>(call, row, column);
}

template <bool Aligned>
void linear(const RowMajorLinear& call, int64_t column_begin, int64_t column_end) {
  int64_t column = column_begin;
  for (; column + kTileColumns <= column_end; column += kTileColumns) {
    columns<kTileColumns, Aligned>(call, column);
  }
  for (; column < column_end; ++column) columns<1, Aligned>(call, column);
}

}  // namespace

void row_major_linear_bf16_along_k_rvv(const RowMajorLinear& call, int64_t column_begin,
                                       int64_t column_end) {
  const bool aligned =
      reinterpret_cast<uintptr_t>(call.weight) % 4 == 0 && call.weight_stride % 2 == 0;
  (aligned ? linear<true> : linear<false>)(call, column_begin, column_end);
}

}  // namespace sgl_rvv
