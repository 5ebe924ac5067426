// The arithmetic of attention on tiles (attention_blocks.h) with RVV 1.0, any VLEN from 128 up.
// Only for files that are compiled with V. `Element` says how 16-bit numbers become FP32 and back:
//
//   even(pairs), odd(pairs)   lower and upper halves of 32-bit lanes -> FP32
//   widen(row, vl)            contiguous elements -> FP32
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

// Adds row i of b, in `right`, times column i of a. `a` points at that column.
template <int Rows, class G, class Float = typename G::Float>
inline __attribute__((always_inline)) void add_outer(Float& c0, Float& c1, Float& c2, Float& c3,
                                                     Float& c4, Float& c5, const float* a0,
                                                     const float* a1, const float* a2,
                                                     const float* a3, const float* a4,
                                                     const float* a5, int64_t i, Float right,
                                                     size_t vl) {
  c0 = G::add(c0, a0[i], right, vl);
  if constexpr (Rows > 1) c1 = G::add(c1, a1[i], right, vl);
  if constexpr (Rows > 2) c2 = G::add(c2, a2[i], right, vl);
  if constexpr (Rows > 3) c3 = G::add(c3, a3[i], right, vl);
  if constexpr (Rows > 4) c4 = G::add(c4, a4[i], right, vl);
  if constexpr (Rows > 5) c5 = G::add(c5, a5[i], right, vl);
}

template <int Rows, class G>
inline void product_tile(const Product& p, size_t vl) {
  using Float = typename G::Float;
  const auto row = [&p](int64_t i) { return p.a + std::min<int64_t>(i, Rows - 1) * p.lda; };
  const float *a0 = row(0), *a1 = row(1), *a2 = row(2), *a3 = row(3), *a4 = row(4), *a5 = row(5);
  Float c0 = begin_row<G>(p, 0, vl);
  Float c1 = c0, c2 = c0, c3 = c0, c4 = c0, c5 = c0;
  if constexpr (Rows > 1) c1 = begin_row<G>(p, 1, vl);
  if constexpr (Rows > 2) c2 = begin_row<G>(p, 2, vl);
  if constexpr (Rows > 3) c3 = begin_row<G>(p, 3, vl);
  if constexpr (Rows > 4) c4 = begin_row<G>(p, 4, vl);
  if constexpr (Rows > 5) c5 = begin_row<G>(p, 5, vl);
  const float* b = p.b;
  int64_t i = 0;
  if (p.k > 0) {
    Float right = G::load(b, vl);
    for (; i + 3 <= p.k; i += 2) {
      const Float next = G::load(b + p.ldb, vl);
      add_outer<Rows, G>(c0, c1, c2, c3, c4, c5, a0, a1, a2, a3, a4, a5, i, right, vl);
      b += 2 * p.ldb;
      right = G::load(b, vl);
      add_outer<Rows, G>(c0, c1, c2, c3, c4, c5, a0, a1, a2, a3, a4, a5, i + 1, next, vl);
    }
    add_outer<Rows, G>(c0, c1, c2, c3, c4, c5, a0, a1, a2, a3, a4, a5, i, right, vl);
    if (i + 1 < p.k) {
      right = G::load(b + p.ldb, vl);
      add_outer<Rows, G>(c0, c1, c2, c3, c4, c5, a0, a1, a2, a3, a4, a5, i + 1, right, vl);
    }
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
      for (int64_t i = 0; i < head; i += 4, to += 4 * pitch) {
        const vuint64m4_t four =
            __riscv_vluxei64_v_u64m4(reinterpret_cast<const uint64_t*>(here.data + i), offsets, vl);
        const vuint32m2_t low = __riscv_vnsrl_wx_u32m2_m(all, four, 0, vl);
        const vuint32m2_t high = __riscv_vnsrl_wx_u32m2_m(all, four, 32, vl);
        __riscv_vse32_v_f32m2(to, Element::even(low, all, vl), vl);
        __riscv_vse32_v_f32m2(to + pitch, Element::odd(low, all, vl), vl);
        __riscv_vse32_v_f32m2(to + 2 * pitch, Element::even(high, all, vl), vl);
        __riscv_vse32_v_f32m2(to + 3 * pitch, Element::odd(high, all, vl), vl);
      }
      token += static_cast<int64_t>(vl);
    }
  }

  static void values(const KvRows& rows, int64_t count, int64_t head_v, float* out) {
    for (int64_t token = 0; token < count; ++token, out += head_v) {
      const uint16_t* row = rows.row(token);
      for (int64_t i = 0; i < head_v;) {
        const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(head_v - i));
        __riscv_vse32_v_f32m4(out + i, Element::widen(row + i, vl), vl);
        i += static_cast<int64_t>(vl);
      }
    }
  }

  static void query(const uint16_t* row, int64_t head, float scale, float* out) {
    for (int64_t i = 0; i < head;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(head - i));
      const vfloat32m4_t wide = Element::widen(row + i, vl);
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
    const size_t most = __riscv_vsetvlmax_e32m4();
    vfloat32m4_t highest = __riscv_vfmv_v_f_f32m4(kNothingSeen, most);
    for (int64_t i = 0; i < count;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(count - i));
      const vfloat32m4_t score = __riscv_vle32_v_f32m4(scores + i, vl);
      // Tail undisturbed: the lanes behind `vl` are reduced too.
      highest = __riscv_vfmax_vv_f32m4_tu(highest, highest, score, vl);
      i += static_cast<int64_t>(vl);
    }
    const vfloat32m1_t start = __riscv_vfmv_s_f_f32m1(kNothingSeen, 1);
    return __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredmax_vs_f32m4_f32m1(highest, start, most));
  }

  static float exponentiate(float* scores, int64_t count, float reference) {
    const size_t most = __riscv_vsetvlmax_e32m4();
    vfloat32m4_t sum = __riscv_vfmv_v_f_f32m4(0.0F, most);
    for (int64_t i = 0; i < count;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(count - i));
      const vfloat32m4_t score = __riscv_vle32_v_f32m4(scores + i, vl);
      const vfloat32m4_t weight = exp_nonpositive(__riscv_vfsub_vf_f32m4(score, reference, vl), vl);
      __riscv_vse32_v_f32m4(scores + i, weight, vl);
      sum = __riscv_vfadd_vv_f32m4_tu(sum, sum, weight, vl);
      i += static_cast<int64_t>(vl);
    }
    const vfloat32m1_t start = __riscv_vfmv_s_f_f32m1(0.0F, 1);
    return __riscv_vfmv_f_s_f32m1_f32(__riscv_vfredusum_vs_f32m4_f32m1(sum, start, most));
  }

  static void renew(float* maximum, const float* peak, float* factor, int64_t rows) {
    for (int64_t i = 0; i < rows;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(rows - i));
      const vfloat32m4_t before = __riscv_vle32_v_f32m4(maximum + i, vl);
      const vfloat32m4_t after =
          __riscv_vfmax_vv_f32m4(before, __riscv_vle32_v_f32m4(peak + i, vl), vl);
      __riscv_vse32_v_f32m4(maximum + i, after, vl);
      const vbool8_t nothing = __riscv_vmfeq_vf_f32m4_b8(after, kNothingSeen, vl);
      const vfloat32m4_t reference = __riscv_vfmerge_vfm_f32m4(after, 0.0F, nothing, vl);
      __riscv_vse32_v_f32m4(factor + i,
                            exp_nonpositive(__riscv_vfsub_vv_f32m4(before, reference, vl), vl), vl);
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
