// The arithmetic of attention on tiles (attention_blocks.h) with RVV 1.0, any VLEN from 128 up.
// Only for files that are compiled with V. `Element` says how 16-bit numbers become FP32 and back:
//
//   even(pairs), odd(pairs)   lower and upper halves of 32-bit lanes -> FP32
//   load(row, vl), widen(..)  contiguous elements -> FP32, four registers of it
//   store(value, out, vl)     FP32 -> contiguous elements, rounded to nearest even
//
// A tile of keys is transposed on the way to FP32: four neighbouring elements of a row are one
// 64-bit lane, so that one gather reads them for as many tokens as a group of four registers holds,
// and shifts take them apart. The products' loops load contiguous FP32 only. Requires 8-byte
// alignment of a key row's start; rows that are not aligned so are copied first. Value rows need 2
// bytes.
//
// product: tiles of up to six rows by one group of four registers (VLEN / 8 columns), 24 registers
// of accumulators, the next row of the right operand loaded ahead; what is left of the columns and
// fits in two registers takes groups of two.
#pragma once

#include <riscv_vector.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "core/all_lanes_rvv.h"
#include "core/attention_blocks.h"
#include "core/exp_rvv.h"

namespace sgl_rvv {
namespace {

// Groups of four and of two registers of FP32, under one set of names.
struct Group4 {
  using Float = vfloat32m4_t;
  static size_t most() { return __riscv_vsetvlmax_e32m4(); }
  static Float zero(size_t vl) { return __riscv_vfmv_v_f_f32m4(0.0F, vl); }
  static Float load(const float* from, size_t vl) { return __riscv_vle32_v_f32m4(from, vl); }
  static void store(float* to, Float value, size_t vl) { __riscv_vse32_v_f32m4(to, value, vl); }
  static Float scale(Float value, float by, size_t vl) {
    return __riscv_vfmul_vf_f32m4(value, by, vl);
  }
  static Float add(Float sum, float a, Float b, size_t vl) {
    return __riscv_vfmacc_vf_f32m4(sum, a, b, vl);
  }
};

struct Group2 {
  using Float = vfloat32m2_t;
  static size_t most() { return __riscv_vsetvlmax_e32m2(); }
  static Float zero(size_t vl) { return __riscv_vfmv_v_f_f32m2(0.0F, vl); }
  static Float load(const float* from, size_t vl) { return __riscv_vle32_v_f32m2(from, vl); }
  static void store(float* to, Float value, size_t vl) { __riscv_vse32_v_f32m2(to, value, vl); }
  static Float scale(Float value, float by, size_t vl) {
    return __riscv_vfmul_vf_f32m2(value, by, vl);
  }
  static Float add(Float sum, float a, Float b, size_t vl) {
    return __riscv_vfmacc_vf_f32m2(sum, a, b, vl);
  }
};

// A product's operands, FP32: a [m, k], b [k, n], c [m, n]; the strides are elements.
struct Product {
  const float* a;
  int64_t lda;
  int64_t k;
  const float* b;
  int64_t ldb;
  float* c;
  int64_t ldc;
  const float* factors;  // of the rows of c, or null: 1
  bool onto;             // add to c, or overwrite it
};

// Row `row` of c as the accumulators begin.
template <class G>
inline typename G::Float begin_row(const Product& p, int64_t row, size_t vl) {
  if (!p.onto) return G::zero(vl);
  const typename G::Float before = G::load(p.c + row * p.ldc, vl);
  return p.factors == nullptr ? before : G::scale(before, p.factors[row], vl);
}

template <int Row, int Rows, class G>
inline __attribute__((always_inline)) void add_row(typename G::Float& sum, float left,
                                                   typename G::Float right, size_t vl) {
  if constexpr (Row < Rows) sum = G::add(sum, left, right, vl);
}

// Adds one row of b times one column of a (in f0 to f5), and loads the next column, which `next`
// points at. The order is that of the instructions: each number is loaded as soon as its register
// is free, and none right behind the vector load that precedes this, whose end an in-order core
// awaits.
template <int Rows, class G, class Float = typename G::Float>
inline __attribute__((always_inline)) void add_outer(Float& c0, Float& c1, Float& c2, Float& c3,
                                                     Float& c4, Float& c5, float& f0, float& f1,
                                                     float& f2, float& f3, float& f4, float& f5,
                                                     Float right, const float* next, int64_t lda,
                                                     size_t vl) {
  add_row<0, Rows, G>(c0, f0, right, vl);
  add_row<1, Rows, G>(c1, f1, right, vl);
  add_row<2, Rows, G>(c2, f2, right, vl);
  f0 = next[0];
  if constexpr (Rows > 1) f1 = next[lda];
  add_row<3, Rows, G>(c3, f3, right, vl);
  if constexpr (Rows > 2) f2 = next[2 * lda];
  if constexpr (Rows > 3) f3 = next[3 * lda];
  add_row<4, Rows, G>(c4, f4, right, vl);
  if constexpr (Rows > 4) f4 = next[4 * lda];
  add_row<5, Rows, G>(c5, f5, right, vl);
  if constexpr (Rows > 5) f5 = next[5 * lda];
}

template <int Rows, class G>
inline void product_tile(const Product& p, size_t vl) {
  using Float = typename G::Float;
  Float c0 = begin_row<G>(p, 0, vl);
  Float c1 = c0, c2 = c0, c3 = c0, c4 = c0, c5 = c0;
  if constexpr (Rows > 1) c1 = begin_row<G>(p, 1, vl);
  if constexpr (Rows > 2) c2 = begin_row<G>(p, 2, vl);
  if constexpr (Rows > 3) c3 = begin_row<G>(p, 3, vl);
  if constexpr (Rows > 4) c4 = begin_row<G>(p, 4, vl);
  if constexpr (Rows > 5) c5 = begin_row<G>(p, 5, vl);
  const auto add = [&](float& f0, float& f1, float& f2, float& f3, float& f4, float& f5,
                       Float right, const float* next) __attribute__((always_inline)) {
    add_outer<Rows, G>(c0, c1, c2, c3, c4, c5, f0, f1, f2, f3, f4, f5, right, next, p.lda, vl);
  };
  if (p.k > 0) {
    const float* a = p.a;
    const float* b = p.b;
    const auto left = [&](int64_t row) { return a[std::min<int64_t>(row, Rows - 1) * p.lda]; };
    float f0 = left(0), f1 = left(1), f2 = left(2), f3 = left(3), f4 = left(4), f5 = left(5);
    Float right = G::load(b, vl);
    int64_t k = p.k;
    // Four or two at a time, as registers allow: the loop's own instructions wait for the end of
    // the multiply-add before them.
    for (; Rows <= 4 && k > 4; k -= 4, a += 4, b += 4 * p.ldb) {
      Float other = G::load(b + p.ldb, vl);
      add(f0, f1, f2, f3, f4, f5, right, a + 1);
      right = G::load(b + 2 * p.ldb, vl);
      add(f0, f1, f2, f3, f4, f5, other, a + 2);
      other = G::load(b + 3 * p.ldb, vl);
      add(f0, f1, f2, f3, f4, f5, right, a + 3);
      right = G::load(b + 4 * p.ldb, vl);
      add(f0, f1, f2, f3, f4, f5, other, a + 4);
    }
    for (; Rows > 4 && k > 2; k -= 2, a += 2, b += 2 * p.ldb) {
      const Float other = G::load(b + p.ldb, vl);
      add(f0, f1, f2, f3, f4, f5, right, a + 1);
      right = G::load(b + 2 * p.ldb, vl);
      add(f0, f1, f2, f3, f4, f5, other, a + 2);
    }
    for (; k > 1; --k, ++a, b += p.ldb) {
      const Float other = G::load(b + p.ldb, vl);
      add(f0, f1, f2, f3, f4, f5, right, a + 1);
      right = other;
    }
    add(f0, f1, f2, f3, f4, f5, right, p.a);  // no next column: any that is there
  }
  G::store(p.c, c0, vl);
  if constexpr (Rows > 1) G::store(p.c + p.ldc, c1, vl);
  if constexpr (Rows > 2) G::store(p.c + 2 * p.ldc, c2, vl);
  if constexpr (Rows > 3) G::store(p.c + 3 * p.ldc, c3, vl);
  if constexpr (Rows > 4) G::store(p.c + 4 * p.ldc, c4, vl);
  if constexpr (Rows > 5) G::store(p.c + 5 * p.ldc, c5, vl);
}

using ProductTile = void(const Product& p, size_t vl);

template <class G>
constexpr ProductTile* kProductTiles[kQueryTile] = {product_tile<1, G>, product_tile<2, G>,
                                                    product_tile<3, G>, product_tile<4, G>,
                                                    product_tile<5, G>, product_tile<6, G>};

// m <= kQueryTile rows, n columns.
inline void multiply(Product p, int64_t m, int64_t n) {
  const auto wide = static_cast<int64_t>(Group4::most());
  const auto narrow = static_cast<int64_t>(Group2::most());
  while (n > 0) {
    const bool half = n <= narrow;
    const int64_t here = std::min(n, half ? narrow : wide);
    (half ? kProductTiles<Group2> : kProductTiles<Group4>)[m - 1](p, static_cast<size_t>(here));
    p.b += here;
    p.c += here;
    n -= here;
  }
}

// Rows of queries that rows_tile() computes at once: beside their accumulators there must be room
// for a row that is multiplied, one that is converted and two that are loaded.
constexpr int64_t kRowsTile = 4;

// c [Rows, vl] = factors c + a [Rows, k] times 16-bit rows of b, converted on the way: one is
// loaded, the next converted and a third multiplied at a time. `rows` are their addresses, the last
// one twice; `column` is the first element of them that is used.
template <class Element, int Rows>
inline void rows_tile(const Product& p, const void* const* rows, int64_t column, size_t vl) {
  using G = Group4;
  using Float = G::Float;
  Float c0 = begin_row<G>(p, 0, vl);
  Float c1 = c0, c2 = c0, c3 = c0;
  if constexpr (Rows > 1) c1 = begin_row<G>(p, 1, vl);
  if constexpr (Rows > 2) c2 = begin_row<G>(p, 2, vl);
  if constexpr (Rows > 3) c3 = begin_row<G>(p, 3, vl);
  const auto add = [&](float& f0, float& f1, float& f2, float& f3, Float right,
                       const float* next) __attribute__((always_inline)) {
    float none = 0.0F;
    add_outer<Rows, G>(c0, c1, c2, c3, c0, c0, f0, f1, f2, f3, none, none, right, next, p.lda, vl);
  };
  if (p.k > 0) {
    const float* a = p.a;
    const auto left = [&](int64_t row) { return a[std::min<int64_t>(row, Rows - 1) * p.lda]; };
    const auto load = [&](int64_t token) {
      return Element::load(static_cast<const uint16_t*>(rows[token]) + column, vl);
    };
    float f0 = left(0), f1 = left(1), f2 = left(2), f3 = left(3);
    Float right = Element::widen(load(0), vl);
    typename Element::Narrow waiting = load(1);
    int64_t k = p.k;
    for (; k > 2; k -= 2, a += 2, rows += 2) {
      const Float other = Element::widen(waiting, vl);
      waiting = load(2);
      add(f0, f1, f2, f3, right, a + 1);
      right = Element::widen(waiting, vl);
      waiting = load(3);  // the last one twice
      add(f0, f1, f2, f3, other, a + 2);
    }
    if (k == 2) {
      const Float other = Element::widen(waiting, vl);
      add(f0, f1, f2, f3, right, a + 1);
      right = other;
    }
    add(f0, f1, f2, f3, right, p.a);  // no next column: any that is there
  }
  G::store(p.c, c0, vl);
  if constexpr (Rows > 1) G::store(p.c + p.ldc, c1, vl);
  if constexpr (Rows > 2) G::store(p.c + 2 * p.ldc, c2, vl);
  if constexpr (Rows > 3) G::store(p.c + 3 * p.ldc, c3, vl);
}

using RowsTile = void(const Product& p, const void* const* rows, int64_t column, size_t vl);

template <class Element>
constexpr RowsTile* kRowsTiles[kRowsTile] = {rows_tile<Element, 1>, rows_tile<Element, 2>,
                                             rows_tile<Element, 3>, rows_tile<Element, 4>};

// The byte offsets of tokens [0, vl) from rows.data.
inline vuint64m8_t row_offsets(const KvRows& rows, size_t vl) {
  const auto stride = static_cast<uint64_t>(rows.slot_stride) * sizeof(uint16_t);
  const vuint64m8_t slots =
      rows.slots == nullptr
          ? __riscv_vid_v_u64m8(vl)
          : __riscv_vle64_v_u64m8(reinterpret_cast<const uint64_t*>(rows.slots), vl);
  return __riscv_vmul_vx_u64m8(slots, stride, vl);
}

inline vuint64m4_t row_offsets4(const KvRows& rows, size_t vl) {
  const auto stride = static_cast<uint64_t>(rows.slot_stride) * sizeof(uint16_t);
  const vuint64m4_t slots =
      rows.slots == nullptr
          ? __riscv_vid_v_u64m4(vl)
          : __riscv_vle64_v_u64m4(reinterpret_cast<const uint64_t*>(rows.slots), vl);
  return __riscv_vmul_vx_u64m4(slots, stride, vl);
}

// Whether every row begins at a multiple of 8 bytes.
inline bool aligned(const KvRows& rows) {
  constexpr uintptr_t kBytes = sizeof(uint64_t);
  return reinterpret_cast<uintptr_t>(rows.data) % kBytes == 0 &&
         static_cast<uintptr_t>(rows.slot_stride) * sizeof(uint16_t) % kBytes == 0;
}

inline void copy_row(const uint16_t* from, int64_t count, uint16_t* to) {
  for (size_t vl; count > 0; count -= static_cast<int64_t>(vl), from += vl, to += vl) {
    vl = __riscv_vsetvl_e16m4(static_cast<size_t>(count));
    __riscv_vse16_v_u16m4(to, __riscv_vle16_v_u16m4(from, vl), vl);
  }
}

// `count` rows, aligned: as they are, or copied to `staging`.
inline KvRows staged(const KvRows& rows, int64_t count, int64_t head, uint16_t* staging) {
  if (aligned(rows)) return rows;
  for (int64_t token = 0; token < count; ++token) {
    copy_row(rows.row(token), head, staging + token * head);
  }
  return {staging, head, nullptr};
}

// Scores of up to six queries with the keys at `base` + `offsets` bytes: c [Rows, vl] = query
// [head, Rows], transposed, times keys that are transposed on the way. In each of the four steps
// the integer unit takes a part of what it has to do for the next four elements, while the other
// multiplies.
template <class Element, int Rows>
inline void score_tile(const float* query, int64_t head, const uint16_t* base, vuint64m4_t offsets,
                       float* c, int64_t ldc, size_t vl) {
  using G = Group2;
  using Float = G::Float;
  const vbool16_t all = all_lanes(vl);
  const auto gather = [&](int64_t i) {
    return __riscv_vluxei64_v_u64m4(reinterpret_cast<const uint64_t*>(base + i), offsets, vl);
  };
  Float c0 = G::zero(vl), c1 = c0, c2 = c0, c3 = c0, c4 = c0, c5 = c0;
  const auto number = [&](int64_t row) { return query[std::min<int64_t>(row, Rows - 1)]; };
  float f0 = number(0), f1 = number(1), f2 = number(2), f3 = number(3), f4 = number(4),
        f5 = number(5);
  const auto add = [&](Float right, const float* next) __attribute__((always_inline)) {
    add_outer<Rows, G>(c0, c1, c2, c3, c4, c5, f0, f1, f2, f3, f4, f5, right, next, 1, vl);
  };
  vuint64m4_t four = gather(0);
  vuint32m2_t low = __riscv_vnsrl_wx_u32m2_m(all, four, 0, vl);
  vuint32m2_t high = __riscv_vnsrl_wx_u32m2_m(all, four, 32, vl);
  Float first = Element::even(low, all, vl);
  for (int64_t i = 0; i < head; i += 4, query += 4 * Rows) {
    four = gather(std::min(i + 4, head - 4));  // the last once more
    const Float second = Element::odd(low, all, vl);
    const Float third = Element::even(high, all, vl);
    add(first, query + Rows);
    const Float fourth = Element::odd(high, all, vl);
    low = __riscv_vnsrl_wx_u32m2_m(all, four, 0, vl);
    add(second, query + 2 * Rows);
    high = __riscv_vnsrl_wx_u32m2_m(all, four, 32, vl);
    add(third, query + 3 * Rows);
    first = Element::even(low, all, vl);
    add(fourth, query + 4 * Rows);
  }
  G::store(c, c0, vl);
  if constexpr (Rows > 1) G::store(c + ldc, c1, vl);
  if constexpr (Rows > 2) G::store(c + 2 * ldc, c2, vl);
  if constexpr (Rows > 3) G::store(c + 3 * ldc, c3, vl);
  if constexpr (Rows > 4) G::store(c + 4 * ldc, c4, vl);
  if constexpr (Rows > 5) G::store(c + 5 * ldc, c5, vl);
}

using ScoreTile = void(const float* query, int64_t head, const uint16_t* base, vuint64m4_t offsets,
                       float* c, int64_t ldc, size_t vl);

template <class Element>
constexpr ScoreTile* kScoreTiles[kQueryTile] = {score_tile<Element, 1>, score_tile<Element, 2>,
                                                score_tile<Element, 3>, score_tile<Element, 4>,
                                                score_tile<Element, 5>, score_tile<Element, 6>};

inline vfloat32m4_t load4(const float* from, int64_t count) {
  return __riscv_vle32_v_f32m4(from, static_cast<size_t>(count));
}

// Reductions of whole groups of four registers: halves first, since reducing four registers at once
// takes longer than two additions and reducing one.
inline vfloat32m1_t highest_lane(vfloat32m4_t value, vfloat32m1_t start) {
  const size_t two = __riscv_vsetvlmax_e32m2();
  const size_t one = __riscv_vsetvlmax_e32m1();
  const vfloat32m2_t half = __riscv_vfmax_vv_f32m2(__riscv_vget_v_f32m4_f32m2(value, 0),
                                                   __riscv_vget_v_f32m4_f32m2(value, 1), two);
  const vfloat32m1_t quarter = __riscv_vfmax_vv_f32m1(__riscv_vget_v_f32m2_f32m1(half, 0),
                                                      __riscv_vget_v_f32m2_f32m1(half, 1), one);
  return __riscv_vfredmax_vs_f32m1_f32m1(quarter, start, one);
}

// The lanes of a group of four registers, added up in one.
inline vfloat32m1_t added_up(vfloat32m4_t value) {
  const vfloat32m2_t half =
      __riscv_vfadd_vv_f32m2(__riscv_vget_v_f32m4_f32m2(value, 0),
                             __riscv_vget_v_f32m4_f32m2(value, 1), __riscv_vsetvlmax_e32m2());
  return __riscv_vfadd_vv_f32m1(__riscv_vget_v_f32m2_f32m1(half, 0),
                                __riscv_vget_v_f32m2_f32m1(half, 1), __riscv_vsetvlmax_e32m1());
}

// Stands behind a row's scores up to a whole group of registers. Its exponential is 0, unless the
// row has nothing above it.
constexpr float kHidden = -std::numeric_limits<float>::max();

// The highest score of a row, of which any may be NaN or infinite; -infinity where it has none.
inline float careful_maximum(const float* scores, int64_t count) {
  vfloat32m1_t peak = __riscv_vfmv_s_f_f32m1(kNothingSeen, 1);
  for (size_t vl; count > 0; count -= static_cast<int64_t>(vl), scores += vl) {
    vl = __riscv_vsetvl_e32m4(static_cast<size_t>(count));
    peak = __riscv_vfredmax_vs_f32m4_f32m1(__riscv_vle32_v_f32m4(scores, vl), peak, vl);
  }
  return __riscv_vfmv_f_s_f32m1_f32(peak);
}

// Exponentials of a group of registers full of scores, in place.
inline vfloat32m4_t exponentials(float* scores, float reference) {
  const size_t all = __riscv_vsetvlmax_e32m4();
  const vfloat32m4_t x = __riscv_vfsub_vf_f32m4(__riscv_vle32_v_f32m4(scores, all), reference, all);
  const vfloat32m4_t weights = exp_nonpositive_number(x, all);
  __riscv_vse32_v_f32m4(scores, weights, all);
  return weights;
}

// Exponentials of `count` scores, in place, of which any may be NaN or infinite; zeros in the lanes
// behind them.
inline vfloat32m4_t careful_exponentials(float* scores, int64_t count, float reference) {
  const auto vl = static_cast<size_t>(count);
  const size_t most = __riscv_vsetvlmax_e32m4();
  const vfloat32m4_t x = __riscv_vfsub_vf_f32m4(load4(scores, count), reference, vl);
  const vfloat32m4_t weights = __riscv_vfadd_vf_f32m4_tu(__riscv_vfmv_v_f_f32m4(0.0F, most),
                                                         exp_nonpositive(x, vl), 0.0F, vl);
  __riscv_vse32_v_f32m4(scores, weights, most);
  return weights;
}

template <class Element>
struct RvvTiles {
  static int64_t columns() { return static_cast<int64_t>(__riscv_vsetvlmax_e32m4()); }

  static void keys(const KvRows& from, int64_t count, int64_t head, uint16_t* staging, float* out) {
    const KvRows rows = staged(from, count, head, staging);
    const auto vl = static_cast<size_t>(count);
    const vuint64m8_t offsets = row_offsets(rows, vl);
    const vbool8_t all = all_lanes4(vl);
    const int64_t pitch = columns();
    const auto gather = [&](int64_t i) {
      return __riscv_vluxei64_v_u64m8(reinterpret_cast<const uint64_t*>(rows.data + i), offsets,
                                      vl);
    };
    vuint64m8_t four = gather(0);
    for (int64_t i = 0; i < head; i += 4, out += 4 * pitch) {
      const vuint32m4_t low = __riscv_vnsrl_wx_u32m4_m(all, four, 0, vl);
      const vuint32m4_t high = __riscv_vnsrl_wx_u32m4_m(all, four, 32, vl);
      four = gather(std::min(i + 4, head - 4));  // ahead; the last once more
      __riscv_vse32_v_f32m4(out, Element::even(low, all, vl), vl);
      __riscv_vse32_v_f32m4(out + pitch, Element::odd(low, all, vl), vl);
      __riscv_vse32_v_f32m4(out + 2 * pitch, Element::even(high, all, vl), vl);
      __riscv_vse32_v_f32m4(out + 3 * pitch, Element::odd(high, all, vl), vl);
    }
  }

  static void query_column(const uint16_t* row, int64_t head, float scale, int64_t pitch,
                           float* out) {
    for (int64_t i = 0; i < head;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(head - i));
      const vfloat32m4_t wide = Element::widen(Element::load(row + i, vl), vl);
      __riscv_vsse32_v_f32m4(out + i * pitch, static_cast<ptrdiff_t>(pitch * sizeof(float)),
                             __riscv_vfmul_vf_f32m4(wide, scale, vl), vl);
      i += static_cast<int64_t>(vl);
    }
  }

  static void scores(const float* query, int64_t m, int64_t head, const KvRows& from, int64_t count,
                     uint16_t* staging, float* c, int64_t ldc) {
    const KvRows rows = staged(from, count, head, staging);
    const auto strip = static_cast<int64_t>(Group2::most());
    for (int64_t i = 0; i < count; i += strip) {
      const KvRows here = rows.from(i);
      const auto vl = static_cast<size_t>(std::min(strip, count - i));
      kScoreTiles<Element>[m - 1](query, head, here.data, row_offsets4(here, vl), c + i, ldc, vl);
    }
  }

  static bool values(const KvRows& rows, int64_t count, int64_t head_v, float* out) {
    const size_t most = __riscv_vsetvlmax_e32m4();
    // 0 times a number is 0, and 0 times anything else NaN.
    vfloat32m4_t check = __riscv_vfmv_v_f_f32m4(0.0F, most);
    for (int64_t i = 0; i < head_v;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(head_v - i));
      float* to = out + i;
      int64_t token = 0;
      // Two at a time: one is loaded while the other is converted.
      for (; token + 2 <= count; token += 2, to += 2 * head_v) {
        const typename Element::Narrow first = Element::load(rows.row(token) + i, vl);
        const typename Element::Narrow second = Element::load(rows.row(token + 1) + i, vl);
        const vfloat32m4_t wide = Element::widen(first, vl);
        const vfloat32m4_t next = Element::widen(second, vl);
        __riscv_vse32_v_f32m4(to, wide, vl);
        __riscv_vse32_v_f32m4(to + head_v, next, vl);
        check = __riscv_vfmacc_vf_f32m4_tu(check, 0.0F, wide, vl);
        check = __riscv_vfmacc_vf_f32m4_tu(check, 0.0F, next, vl);
      }
      if (token < count) {
        const vfloat32m4_t wide = Element::widen(Element::load(rows.row(token) + i, vl), vl);
        __riscv_vse32_v_f32m4(to, wide, vl);
        check = __riscv_vfmacc_vf_f32m4_tu(check, 0.0F, wide, vl);
      }
      i += static_cast<int64_t>(vl);
    }
    const vfloat32m1_t sum =
        __riscv_vfredusum_vs_f32m4_f32m1(check, __riscv_vfmv_s_f_f32m1(0.0F, 1), most);
    return __riscv_vfmv_f_s_f32m1_f32(sum) == 0.0F;
  }

  static void query(const uint16_t* row, int64_t head, float scale, float* out) {
    for (int64_t i = 0; i < head;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(head - i));
      const vfloat32m4_t wide = Element::widen(Element::load(row + i, vl), vl);
      __riscv_vse32_v_f32m4(out + i, __riscv_vfmul_vf_f32m4(wide, scale, vl), vl);
      i += static_cast<int64_t>(vl);
    }
  }

  static void product(const float* a, int64_t lda, int64_t m, int64_t k, const float* b,
                      int64_t ldb, int64_t n, float* c, int64_t ldc) {
    multiply({a, lda, k, b, ldb, c, ldc, nullptr, false}, m, n);
  }

  static void product_onto(const float* factors, const float* a, int64_t lda, int64_t m, int64_t k,
                           const float* b, int64_t ldb, int64_t n, float* c, int64_t ldc) {
    multiply({a, lda, k, b, ldb, c, ldc, factors, true}, m, n);
  }

  static void locate(const KvRows& rows, int64_t count, const void** out) {
    auto* to = reinterpret_cast<uint64_t*>(out);
    for (int64_t token = 0; token < count; token += columns()) {
      const auto vl = static_cast<size_t>(std::min(columns(), count - token));
      const KvRows here = rows.from(token);
      __riscv_vse64_v_u64m8(
          to + token,
          __riscv_vadd_vx_u64m8(row_offsets(here, vl), reinterpret_cast<uint64_t>(here.data), vl),
          vl);
    }
    std::fill_n(out + count, kRowsAhead, out[count - 1]);
  }

  static void rows_onto(const float* factors, const float* a, int64_t lda, int64_t m, int64_t k,
                        const void* const* rows, int64_t n, float* c, int64_t ldc) {
    // In tiles of about equal size.
    const int64_t tiles = (m + kRowsTile - 1) / kRowsTile;
    const int64_t height = (m + tiles - 1) / tiles;
    for (int64_t row = 0; row < m; row += height) {
      for (int64_t column = 0; column < n; column += columns()) {
        const Product p = {a + row * lda, lda,           k,   nullptr, 0, c + row * ldc + column,
                           ldc,           factors + row, true};
        kRowsTiles<Element>[std::min(height, m - row) - 1](
            p, rows, column, static_cast<size_t>(std::min(n - column, columns())));
      }
    }
  }

  static void cap(float* scores, int64_t count, float cap) {
    for (int64_t i = 0; i < count;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(count - i));
      const vfloat32m4_t score = __riscv_vle32_v_f32m4(scores + i, vl);
      const vfloat32m4_t magnitude = __riscv_vfabs_v_f32m4(score, vl);
      const vfloat32m4_t t =
          exp_nonpositive(__riscv_vfmul_vf_f32m4(magnitude, -2.0F / cap, vl), vl);
      const vfloat32m4_t tanh = __riscv_vfdiv_vv_f32m4(__riscv_vfrsub_vf_f32m4(t, 1.0F, vl),
                                                       __riscv_vfadd_vf_f32m4(t, 1.0F, vl), vl);
      const vfloat32m4_t capped = __riscv_vfmul_vf_f32m4(tanh, cap, vl);
      __riscv_vse32_v_f32m4(scores + i, __riscv_vfsgnj_vv_f32m4(capped, score, vl), vl);
      i += static_cast<int64_t>(vl);
    }
  }

  static bool maxima(float* scores, int64_t pitch, int64_t rows, const int64_t* counts,
                     float* out) {
    const int64_t most = columns();
    const auto all = static_cast<size_t>(most);
    // 0 times a number is 0, and 0 times anything else NaN.
    vfloat32m4_t check = __riscv_vfmv_v_f_f32m4(0.0F, all);
    const vfloat32m1_t none = __riscv_vfmv_s_f_f32m1(kNothingSeen, 1);
    vfloat32m1_t least = __riscv_vfmv_s_f_f32m1(0.0F, 1);
    for (int64_t row = 0; row < rows; ++row) {
      float* from = scores + row * pitch;
      const int64_t count = counts[row];
      if (const int64_t over = count & (most - 1); over != 0) {
        const auto hidden = static_cast<size_t>(most - over);
        __riscv_vse32_v_f32m4(from + count, __riscv_vfmv_v_f_f32m4(kHidden, hidden), hidden);
      }
      vfloat32m4_t highest = load4(from, most);
      check = __riscv_vfmacc_vf_f32m4(check, 0.0F, highest, all);
      for (int64_t i = most; i < count; i += most) {
        const vfloat32m4_t more = load4(from + i, most);
        check = __riscv_vfmacc_vf_f32m4(check, 0.0F, more, all);
        highest = __riscv_vfmax_vv_f32m4(highest, more, all);
      }
      const vfloat32m1_t peak = highest_lane(highest, none);
      least = __riscv_vfmin_vv_f32m1(least, peak, 1);
      __riscv_vse32_v_f32m1(out + row, peak, 1);
    }
    const vfloat32m1_t sum =
        __riscv_vfredusum_vs_f32m4_f32m1(check, __riscv_vfmv_s_f_f32m1(0.0F, 1), all);
    if (__riscv_vfmv_f_s_f32m1_f32(sum) == 0.0F && __riscv_vfmv_f_s_f32m1_f32(least) > kHidden) {
      return true;
    }
    for (int64_t row = 0; row < rows; ++row) {
      out[row] = careful_maximum(scores + row * pitch, counts[row]);
    }
    return false;
  }

  static void exponentiate(float* scores, int64_t pitch, int64_t rows, const int64_t* counts,
                           const float* reference, const float* factor, float* sums, bool careful) {
    const int64_t most = columns();
    const size_t lanes = __riscv_vsetvlmax_e32m1();
    for (int64_t row = 0; row < rows; ++row, scores += pitch, sums += lanes) {
      const float subtracted = reference[row];
      const int64_t count = counts[row];
      vfloat32m1_t sum;
      if (careful) {
        sum = __riscv_vfmv_v_f_f32m1(0.0F, lanes);
        for (int64_t i = 0; i < count; i += most) {
          const int64_t here = std::min(most, count - i);
          const vfloat32m4_t weights = careful_exponentials(scores + i, here, subtracted);
          sum = __riscv_vfadd_vv_f32m1(sum, added_up(weights), lanes);
        }
      } else {
        sum = added_up(exponentials(scores, subtracted));
        for (int64_t i = most; i < count; i += most) {
          sum = __riscv_vfadd_vv_f32m1(sum, added_up(exponentials(scores + i, subtracted)), lanes);
        }
      }
      const vfloat32m1_t before = __riscv_vle32_v_f32m1(sums, lanes);
      __riscv_vse32_v_f32m1(sums, __riscv_vfmacc_vf_f32m1(sum, factor[row], before, lanes), lanes);
    }
  }

  static void totals(const float* sums, int64_t rows, float* out) {
    const size_t lanes = __riscv_vsetvlmax_e32m1();
    const vfloat32m1_t zero = __riscv_vfmv_s_f_f32m1(0.0F, 1);
    for (int64_t row = 0; row < rows; ++row, sums += lanes) {
      const vfloat32m1_t each = __riscv_vle32_v_f32m1(sums, lanes);
      __riscv_vse32_v_f32m1(out + row, __riscv_vfredusum_vs_f32m1_f32m1(each, zero, lanes), 1);
    }
  }

  static void renew(float* maximum, float* reference, float* factor, int64_t rows) {
    for (int64_t i = 0; i < rows;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(rows - i));
      const vfloat32m4_t before = __riscv_vle32_v_f32m4(maximum + i, vl);
      const vfloat32m4_t after =
          __riscv_vfmax_vv_f32m4(before, __riscv_vle32_v_f32m4(reference + i, vl), vl);
      __riscv_vse32_v_f32m4(maximum + i, after, vl);
      const vbool8_t nothing = __riscv_vmfeq_vf_f32m4_b8(after, kNothingSeen, vl);
      const vfloat32m4_t from = __riscv_vfmerge_vfm_f32m4(after, 0.0F, nothing, vl);
      __riscv_vse32_v_f32m4(reference + i, from, vl);
      __riscv_vse32_v_f32m4(factor + i,
                            exp_nonpositive(__riscv_vfsub_vv_f32m4(before, from, vl), vl), vl);
      i += static_cast<int64_t>(vl);
    }
  }

  static void normalisers(const float* sum, float* out, int64_t rows) {
    for (int64_t i = 0; i < rows;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(rows - i));
      const vfloat32m4_t from = __riscv_vle32_v_f32m4(sum + i, vl);
      const vbool8_t nothing = __riscv_vmfeq_vf_f32m4_b8(from, 0.0F, vl);
      const vfloat32m4_t inverse = __riscv_vfrdiv_vf_f32m4(from, 1.0F, vl);
      __riscv_vse32_v_f32m4(out + i, __riscv_vfmerge_vfm_f32m4(inverse, 0.0F, nothing, vl), vl);
      i += static_cast<int64_t>(vl);
    }
  }

  static void normalised(const float* row, int64_t count, float by, float* out) {
    for (int64_t i = 0; i < count;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(count - i));
      const vfloat32m4_t value = __riscv_vle32_v_f32m4(row + i, vl);
      __riscv_vse32_v_f32m4(out + i, __riscv_vfmul_vf_f32m4(value, by, vl), vl);
      i += static_cast<int64_t>(vl);
    }
  }

  static void store(const float* row, int64_t count, float by, uint16_t* out) {
    for (int64_t i = 0; i < count;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(count - i));
      const vfloat32m4_t value = __riscv_vle32_v_f32m4(row + i, vl);
      Element::store(__riscv_vfmul_vf_f32m4(value, by, vl), out + i, vl);
      i += static_cast<int64_t>(vl);
    }
  }
};

}  // namespace
}  // namespace sgl_rvv
