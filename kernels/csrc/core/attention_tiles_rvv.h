// The arithmetic of attention on tiles (attention_blocks.h) with RVV 1.0, any VLEN from 128 up.
// Only for files that are compiled with V. `Element` says how 16-bit numbers become FP32 and back:
//
//   even(pairs), odd(pairs)   lower and upper halves of 32-bit lanes -> FP32
//   load(row, vl), widen(..)  contiguous elements -> FP32, four registers of it
//   load_half, widen_half     the same for two registers
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

#include "core/attention_blocks.h"
#include "core/exp_rvv.h"

namespace sgl_rvv {
namespace {

// Ones that the compiler does not know to be ones, so that integer instructions stay masked. On
// hardware that costs nothing; QEMU's code for unmasked ones at full length (AVX, without clearing
// the upper halves of the host's registers) makes the floating-point helpers after it ten times
// slower.
inline vbool8_t all_lanes4(size_t vl) {
  vbool8_t all = __riscv_vmset_m_b8(vl);
  asm("" : "+vm"(all));
  return all;
}

inline vbool16_t all_lanes2(size_t vl) {
  vbool16_t all = __riscv_vmset_m_b16(vl);
  asm("" : "+vm"(all));
  return all;
}

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
    for (; k > 2; k -= 2, a += 2, b += 2 * p.ldb) {
      const Float second = G::load(b + p.ldb, vl);
      add(f0, f1, f2, f3, f4, f5, right, a + 1);
      right = G::load(b + 2 * p.ldb, vl);
      add(f0, f1, f2, f3, f4, f5, second, a + 2);
    }
    if (k == 2) {
      const Float second = G::load(b + p.ldb, vl);
      add(f0, f1, f2, f3, f4, f5, right, a + 1);
      right = second;
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

// c [Rows, vl] = factors c + a [Rows, k] times 16-bit rows of b, converted on the way: one row is
// loaded, the next converted and a third multiplied at a time. Groups of two registers, so that all
// three stages have room beside six accumulators.
template <class Element, int Rows>
inline void rows_tile(const Product& p, const KvRows& b, size_t vl) {
  using G = Group2;
  using Float = G::Float;
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
  const int64_t last = p.k - 1;
  if (last >= 0) {
    const float* a = p.a;
    const auto left = [&](int64_t row) { return a[std::min<int64_t>(row, Rows - 1) * p.lda]; };
    // Behind the last token the last is loaded again.
    const auto load = [&](int64_t token) {
      return Element::load_half(b.row(std::min(token, last)), vl);
    };
    float f0 = left(0), f1 = left(1), f2 = left(2), f3 = left(3), f4 = left(4), f5 = left(5);
    Float right = Element::widen_half(load(0), vl);
    typename Element::NarrowHalf waiting = load(1);
    int64_t k = 0;
    for (; k < last; k += 2, a += 2) {
      const typename Element::NarrowHalf after = load(k + 2);
      const Float second = Element::widen_half(waiting, vl);
      add(f0, f1, f2, f3, f4, f5, right, a + 1);
      waiting = load(k + 3);
      right = Element::widen_half(after, vl);
      add(f0, f1, f2, f3, f4, f5, second, k + 1 < last ? a + 2 : a);
    }
    if (k == last) add(f0, f1, f2, f3, f4, f5, right, a);
  }
  G::store(p.c, c0, vl);
  if constexpr (Rows > 1) G::store(p.c + p.ldc, c1, vl);
  if constexpr (Rows > 2) G::store(p.c + 2 * p.ldc, c2, vl);
  if constexpr (Rows > 3) G::store(p.c + 3 * p.ldc, c3, vl);
  if constexpr (Rows > 4) G::store(p.c + 4 * p.ldc, c4, vl);
  if constexpr (Rows > 5) G::store(p.c + 5 * p.ldc, c5, vl);
}

using RowsTile = void(const Product& p, const KvRows& b, size_t vl);

template <class Element>
constexpr RowsTile* kRowsTiles[kQueryTile] = {rows_tile<Element, 1>, rows_tile<Element, 2>,
                                              rows_tile<Element, 3>, rows_tile<Element, 4>,
                                              rows_tile<Element, 5>, rows_tile<Element, 6>};

// The byte offsets of tokens [0, vl) from rows.data.
inline vuint64m4_t row_offsets(const KvRows& rows, size_t vl) {
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

inline vfloat32m1_t sum_of_lanes(vfloat32m4_t value, vfloat32m1_t start) {
  const size_t two = __riscv_vsetvlmax_e32m2();
  const size_t one = __riscv_vsetvlmax_e32m1();
  const vfloat32m2_t half = __riscv_vfadd_vv_f32m2(__riscv_vget_v_f32m4_f32m2(value, 0),
                                                   __riscv_vget_v_f32m4_f32m2(value, 1), two);
  const vfloat32m1_t quarter = __riscv_vfadd_vv_f32m1(__riscv_vget_v_f32m2_f32m1(half, 0),
                                                      __riscv_vget_v_f32m2_f32m1(half, 1), one);
  return __riscv_vfredusum_vs_f32m1_f32m1(quarter, start, one);
}

// In place; returns the exponentials.
inline vfloat32m4_t exponentiate_strip(float* scores, int64_t count, float reference) {
  const auto vl = static_cast<size_t>(count);
  const vfloat32m4_t weights =
      exp_nonpositive(__riscv_vfsub_vf_f32m4(load4(scores, count), reference, vl), vl);
  __riscv_vse32_v_f32m4(scores, weights, vl);
  return weights;
}

template <class Element>
struct RvvTiles {
  static int64_t columns() { return static_cast<int64_t>(__riscv_vsetvlmax_e32m4()); }

  static void keys(const KvRows& from, int64_t count, int64_t head, uint16_t* staging, float* out) {
    const KvRows rows = staged(from, count, head, staging);
    const int64_t pitch = columns();
    for (int64_t token = 0; token < count;) {
      const size_t vl = __riscv_vsetvl_e64m4(static_cast<size_t>(count - token));
      const KvRows here = rows.from(token);
      const vuint64m4_t offsets = row_offsets(here, vl);
      const vbool16_t all = all_lanes2(vl);
      float* to = out + token;
      const auto gather = [&](int64_t i) {
        return __riscv_vluxei64_v_u64m4(reinterpret_cast<const uint64_t*>(here.data + i), offsets,
                                        vl);
      };
      // Eight elements a round: four are converted while those before them are stored.
      vuint64m4_t four = gather(0);
      for (int64_t i = 0; i < head; i += kHeadStep, to += kHeadStep * pitch) {
        const vuint64m4_t second = gather(i + 4);
        const vuint32m2_t low = __riscv_vnsrl_wx_u32m2_m(all, four, 0, vl);
        const vuint32m2_t high = __riscv_vnsrl_wx_u32m2_m(all, four, 32, vl);
        const vfloat32m2_t e0 = Element::even(low, all, vl);
        const vfloat32m2_t e1 = Element::odd(low, all, vl);
        const vfloat32m2_t e2 = Element::even(high, all, vl);
        const vfloat32m2_t e3 = Element::odd(high, all, vl);
        four = gather(std::min(i + kHeadStep, head - 4));  // ahead; the last once more
        const vuint32m2_t next_low = __riscv_vnsrl_wx_u32m2_m(all, second, 0, vl);
        __riscv_vse32_v_f32m2(to, e0, vl);
        const vuint32m2_t next_high = __riscv_vnsrl_wx_u32m2_m(all, second, 32, vl);
        __riscv_vse32_v_f32m2(to + pitch, e1, vl);
        const vfloat32m2_t e4 = Element::even(next_low, all, vl);
        __riscv_vse32_v_f32m2(to + 2 * pitch, e2, vl);
        const vfloat32m2_t e5 = Element::odd(next_low, all, vl);
        __riscv_vse32_v_f32m2(to + 3 * pitch, e3, vl);
        __riscv_vse32_v_f32m2(to + 4 * pitch, e4, vl);
        const vfloat32m2_t e6 = Element::even(next_high, all, vl);
        __riscv_vse32_v_f32m2(to + 5 * pitch, e5, vl);
        const vfloat32m2_t e7 = Element::odd(next_high, all, vl);
        __riscv_vse32_v_f32m2(to + 6 * pitch, e6, vl);
        __riscv_vse32_v_f32m2(to + 7 * pitch, e7, vl);
      }
      token += static_cast<int64_t>(vl);
    }
  }

  static void values(const KvRows& rows, int64_t count, int64_t head_v, float* out) {
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
      }
      if (token < count) {
        __riscv_vse32_v_f32m4(to, Element::widen(Element::load(rows.row(token) + i, vl), vl), vl);
      }
      i += static_cast<int64_t>(vl);
    }
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

  static void rows_onto(const float* factors, const float* a, int64_t lda, int64_t m, int64_t k,
                        KvRows b, int64_t n, float* c, int64_t ldc) {
    const auto columns = static_cast<int64_t>(Group2::most());
    for (; n > 0; n -= columns, b.data += columns, c += columns) {
      kRowsTiles<Element>[m - 1]({a, lda, k, nullptr, 0, c, ldc, factors, true}, b,
                                 static_cast<size_t>(std::min(n, columns)));
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

  static float maximum(const float* scores, int64_t count) {
    const auto most = static_cast<int64_t>(__riscv_vsetvlmax_e32m4());
    vfloat32m1_t peak = __riscv_vfmv_s_f_f32m1(kNothingSeen, 1);
    int64_t i = 0;
    if (count >= most) {
      vfloat32m4_t highest = load4(scores, most);
      for (i = most; i + most <= count; i += most) {
        highest =
            __riscv_vfmax_vv_f32m4(highest, load4(scores + i, most), static_cast<size_t>(most));
      }
      peak = highest_lane(highest, peak);
    }
    if (i < count) {
      peak = __riscv_vfredmax_vs_f32m4_f32m1(load4(scores + i, count - i), peak,
                                             static_cast<size_t>(count - i));
    }
    return __riscv_vfmv_f_s_f32m1_f32(peak);
  }

  static float exponentiate(float* scores, int64_t count, float reference) {
    const auto most = static_cast<int64_t>(__riscv_vsetvlmax_e32m4());
    vfloat32m1_t total = __riscv_vfmv_s_f_f32m1(0.0F, 1);
    int64_t i = 0;
    if (count >= most) {
      vfloat32m4_t sum = exponentiate_strip(scores, most, reference);
      for (i = most; i + most <= count; i += most) {
        sum = __riscv_vfadd_vv_f32m4(sum, exponentiate_strip(scores + i, most, reference),
                                     static_cast<size_t>(most));
      }
      total = sum_of_lanes(sum, total);
    }
    if (i < count) {
      total = __riscv_vfredusum_vs_f32m4_f32m1(exponentiate_strip(scores + i, count - i, reference),
                                               total, static_cast<size_t>(count - i));
    }
    return __riscv_vfmv_f_s_f32m1_f32(total);
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
