// W8A8 linear, RVV 1.0: the "grouped" technique.
//
// 32 columns of the weight are one group of 8-bit lanes. Products go to 16-bit lanes, in which as
// many k are added up as cannot overflow (int8_linear.h: 4, seldom 2, all but never 1), and only
// then to the int32 sums: widening costs as much as two multiplications. A register of weights is
// loaded anew as soon as its last product is made, so that nothing waits for a load and nothing
// else is kept.
//
// Up to 6 rows: one tile, the weight is read once. More: tiles of 4, panels of 256 k, which stay in
// L1 while all tiles use them; the sums of 128 rows wait in a scratch. The weight comes from memory
// once for each 128 rows.
//
// int32 sums are groups of 4 registers: 32 columns need VLEN >= 256; at VLEN 128 a block is done in
// two halves, from the same bytes.
//
// Requires V. Alignment: out to its elements.
// Modelled on the SpacemiT X60 (VLEN 256, data in L1): see kernels/README.md.

#include <riscv_vector.h>

#include "core/all_lanes_rvv.h"
#include "core/fp16_lanes_rvv.h"
#include "core/kernels_rvv.h"
#include "core/nearest_rounding.h"
#include "core/packed_layout.h"

namespace sgl_rvv {
namespace {

#define SGL_RVV_INLINE inline __attribute__((always_inline))

using Weights = vint8m1_t;
using Products = vint16m2_t;
using Sums = vint32m4_t;

constexpr int64_t kGroupRows = 128;  // sums of 128 rows: 16 KiB
constexpr size_t kWideBytes = 32;    // VLEN 256: two k of a block fill two registers

// One instruction each, in the order in which they are written. Compilers would gather the loads in
// front of their first use, and make a product right before the one that it is added to, for which
// an in-order core then waits: 4 to 7 multiply-adds per cycle of this become 3 to 6 (modelled).
// Registers are the compiler's choice.
SGL_RVV_INLINE void begin_products(size_t vl) {
  asm volatile("vsetvli zero, %0, e8, m1, ta, ma" : : "r"(vl) : "vl", "vtype");
}

// Neither of these changes vl: 8-bit lanes in one register are as many as 16-bit lanes in two.
SGL_RVV_INLINE void to_products() {
  asm volatile("vsetvli zero, zero, e8, m1, ta, ma" : : : "vl", "vtype");
}

SGL_RVV_INLINE void to_sums() {
  asm volatile("vsetvli zero, zero, e16, m2, ta, ma" : : : "vl", "vtype");
}

SGL_RVV_INLINE int64_t load_code(const int8_t* a) {
  int64_t code;
  asm volatile("lb %0, %1" : "=r"(code) : "m"(*a));
  return code;
}

SGL_RVV_INLINE Weights load_row(const int8_t* w) {
  Weights row;
  asm volatile("vle8.v %0, (%1)" : "=vr"(row) : "r"(w) : "memory");
  return row;
}

// Weights of two consecutive k. `Wide`: as one load, where they fill two registers.
template <bool Wide>
SGL_RVV_INLINE void load_two(const int8_t* w, Weights& first, Weights& second) {
  if constexpr (Wide) {
    vint8m2_t both;
    asm volatile("vl2re8.v %0, (%1)" : "=vr"(both) : "r"(w) : "memory");
    first = __riscv_vget_v_i8m2_i8m1(both, 0);
    second = __riscv_vget_v_i8m2_i8m1(both, 1);
  } else {
    first = load_row(w);
    second = load_row(w + kBlockColumns);
  }
}

template <bool Wide>
SGL_RVV_INLINE void load_quad(const int8_t* w, Weights& w0, Weights& w1, Weights& w2, Weights& w3) {
  load_two<Wide>(w, w0, w1);
  load_two<Wide>(w + 2 * kBlockColumns, w2, w3);
}

// products = code * w, or products += code * w; then the code that comes next in that place.
template <bool First>
SGL_RVV_INLINE void multiply(Products& products, int64_t& code, Weights w, const int8_t* next) {
  if constexpr (First) {
    asm volatile("vwmul.vx %0, %1, %2" : "=&vr"(products) : "vr"(w), "r"(code));
  } else {
    asm volatile("vwmacc.vx %0, %2, %1" : "+&vr"(products) : "vr"(w), "r"(code));
  }
  code = load_code(next);
}

SGL_RVV_INLINE void widen(Sums& sums, Products products) {
  asm volatile("vwadd.wv %0, %0, %1" : "+&vr"(sums) : "vr"(products));
}

// The next code of each of up to four chains of products, in which each depends on the one before.
struct Codes {
  int64_t c0, c1, c2, c3;
};

// One k of `Chains` chains, with one register of weights for each; n0 to n3 are the codes that come
// next.
template <int Chains, bool First>
SGL_RVV_INLINE void stage(Products& p0, Products& p1, Products& p2, Products& p3, Codes& codes,
                          Weights w0, Weights w1, Weights w2, Weights w3, const int8_t* n0,
                          const int8_t* n1, const int8_t* n2, const int8_t* n3) {
  multiply<First>(p0, codes.c0, w0, n0);
  if constexpr (Chains > 1) multiply<First>(p1, codes.c1, w1, n1);
  if constexpr (Chains > 2) multiply<First>(p2, codes.c2, w2, n2);
  if constexpr (Chains > 3) multiply<First>(p3, codes.c3, w3, n3);
}

constexpr int64_t kRow = kInt8PanelDepth;  // from one row of a tile to the next

// One k of `Rows` rows; `next` is the next code of the first.
template <int Rows, bool First>
SGL_RVV_INLINE void stage_rows(Products& p0, Products& p1, Products& p2, Products& p3, Codes& codes,
                               Weights w, const int8_t* next) {
  stage<Rows, First>(p0, p1, p2, p3, codes, w, w, w, w, next, next + kRow, next + 2 * kRow,
                     next + 3 * kRow);
}

template <int Chains>
SGL_RVV_INLINE void widen_all(Sums& c0, Sums& c1, Sums& c2, Sums& c3, Products p0, Products p1,
                              Products p2, Products p3) {
  to_sums();
  widen(c0, p0);
  if constexpr (Chains > 1) widen(c1, p1);
  if constexpr (Chains > 2) widen(c2, p2);
  if constexpr (Chains > 3) widen(c3, p3);
  to_products();
}

// One quad of `Rows` rows (at most 4), whose codes are at `a` and whose first codes are in `codes`,
// where afterwards those at `after` are. With `Reload` each pair of weights is replaced by that of
// the quad at `next` after its last product.
template <int Rows, int Group, bool Reload, bool Wide>
SGL_RVV_INLINE void step_rows(Sums& c0, Sums& c1, Sums& c2, Sums& c3, Codes& codes, const int8_t* a,
                              const int8_t* after, Weights& w0, Weights& w1, Weights& w2,
                              Weights& w3, const int8_t* next) {
  Products p0, p1, p2, p3;
  stage_rows<Rows, true>(p0, p1, p2, p3, codes, w0, a + 1);
  if constexpr (Group == 1) widen_all<Rows>(c0, c1, c2, c3, p0, p1, p2, p3);
  stage_rows<Rows, Group == 1>(p0, p1, p2, p3, codes, w1, a + 2);
  if constexpr (Reload) load_two<Wide>(next, w0, w1);
  if constexpr (Group <= 2) widen_all<Rows>(c0, c1, c2, c3, p0, p1, p2, p3);
  stage_rows<Rows, Group <= 2>(p0, p1, p2, p3, codes, w2, a + 3);
  if constexpr (Group == 1) widen_all<Rows>(c0, c1, c2, c3, p0, p1, p2, p3);
  stage_rows<Rows, Group == 1>(p0, p1, p2, p3, codes, w3, after);
  if constexpr (Reload) load_two<Wide>(next + 2 * kBlockColumns, w2, w3);
  widen_all<Rows>(c0, c1, c2, c3, p0, p1, p2, p3);
}

// The same for a whole tile: five rows as two and three, six as three times two, since no more
// registers are left for products.
template <int Rows, int Group, bool Reload, bool Wide>
SGL_RVV_INLINE void step(Sums& c0, Sums& c1, Sums& c2, Sums& c3, Sums& c4, Sums& c5, Codes& codes,
                         const int8_t* a, Weights& w0, Weights& w1, Weights& w2, Weights& w3,
                         const int8_t* next) {
  const int8_t* after = a + kQuad;
  if constexpr (Rows <= 4) {
    step_rows<Rows, Group, Reload, Wide>(c0, c1, c2, c3, codes, a, after, w0, w1, w2, w3, next);
  } else if constexpr (Rows == 5) {
    const int8_t* second = a + 2 * kRow;
    step_rows<2, Group, false, Wide>(c0, c1, c1, c1, codes, a, second, w0, w1, w2, w3, next);
    codes.c2 = load_code(second + 2 * kRow);
    step_rows<3, Group, Reload, Wide>(c2, c3, c4, c4, codes, second, after, w0, w1, w2, w3, next);
  } else {
    const int8_t* second = a + 2 * kRow;
    const int8_t* third = a + 4 * kRow;
    step_rows<2, Group, false, Wide>(c0, c1, c1, c1, codes, a, second, w0, w1, w2, w3, next);
    step_rows<2, Group, false, Wide>(c2, c3, c3, c3, codes, second, third, w0, w1, w2, w3, next);
    step_rows<2, Group, Reload, Wide>(c4, c5, c5, c5, codes, third, after, w0, w1, w2, w3, next);
  }
}

// One or two rows have too few chains to fill the time until a product can be added to: two quads
// at once. Sums of one row are kept in two, c0 and c1.
//
// One row in groups of 4: chains of quads 0 and 1.
template <bool Reload, bool Wide>
SGL_RVV_INLINE void step_one_row(Sums& c0, Sums& c1, Codes& codes, const int8_t* a, Weights& w0,
                                 Weights& w1, Weights& w2, Weights& w3, Weights& w4, Weights& w5,
                                 Weights& w6, Weights& w7, const int8_t* next) {
  Products p0, p1;
  stage<2, true>(p0, p1, p1, p1, codes, w0, w4, w4, w4, a + 1, a + 5, a, a);
  stage<2, false>(p0, p1, p1, p1, codes, w1, w5, w5, w5, a + 2, a + 6, a, a);
  if constexpr (Reload) load_two<Wide>(next, w0, w1);
  if constexpr (Reload) load_two<Wide>(next + 4 * kBlockColumns, w4, w5);
  stage<2, false>(p0, p1, p1, p1, codes, w2, w6, w6, w6, a + 3, a + 7, a, a);
  stage<2, false>(p0, p1, p1, p1, codes, w3, w7, w7, w7, a + 8, a + 12, a, a);
  if constexpr (Reload) load_two<Wide>(next + 2 * kBlockColumns, w2, w3);
  if constexpr (Reload) load_two<Wide>(next + 6 * kBlockColumns, w6, w7);
  widen_all<2>(c0, c1, c1, c1, p0, p1, p1, p1);
}

// One row in groups of 2: four chains.
template <bool Reload, bool Wide>
SGL_RVV_INLINE void step_one_row_pairs(Sums& c0, Sums& c1, Codes& codes, const int8_t* a,
                                       Weights& w0, Weights& w1, Weights& w2, Weights& w3,
                                       Weights& w4, Weights& w5, Weights& w6, Weights& w7,
                                       const int8_t* next) {
  Products p0, p1, p2, p3;
  stage<4, true>(p0, p1, p2, p3, codes, w0, w2, w4, w6, a + 1, a + 3, a + 5, a + 7);
  stage<4, false>(p0, p1, p2, p3, codes, w1, w3, w5, w7, a + 8, a + 10, a + 12, a + 14);
  if constexpr (Reload) load_quad<Wide>(next, w0, w1, w2, w3);
  if constexpr (Reload) load_quad<Wide>(next + kQuad * kBlockColumns, w4, w5, w6, w7);
  to_sums();
  widen(c0, p0);
  widen(c1, p1);
  widen(c0, p2);
  widen(c1, p3);
  to_products();
}

// Two rows in groups of 4: chains of both rows in quads 0 and 1.
template <bool Reload, bool Wide>
SGL_RVV_INLINE void step_two_rows(Sums& c0, Sums& c1, Codes& codes, const int8_t* a, Weights& w0,
                                  Weights& w1, Weights& w2, Weights& w3, Weights& w4, Weights& w5,
                                  Weights& w6, Weights& w7, const int8_t* next) {
  Products p0, p1, p2, p3;
  const int8_t* b = a + kRow;
  stage<4, true>(p0, p1, p2, p3, codes, w0, w0, w4, w4, a + 1, b + 1, a + 5, b + 5);
  stage<4, false>(p0, p1, p2, p3, codes, w1, w1, w5, w5, a + 2, b + 2, a + 6, b + 6);
  if constexpr (Reload) load_two<Wide>(next, w0, w1);
  if constexpr (Reload) load_two<Wide>(next + 4 * kBlockColumns, w4, w5);
  stage<4, false>(p0, p1, p2, p3, codes, w2, w2, w6, w6, a + 3, b + 3, a + 7, b + 7);
  stage<4, false>(p0, p1, p2, p3, codes, w3, w3, w7, w7, a + 8, b + 8, a + 12, b + 12);
  if constexpr (Reload) load_two<Wide>(next + 2 * kBlockColumns, w2, w3);
  if constexpr (Reload) load_two<Wide>(next + 6 * kBlockColumns, w6, w7);
  to_sums();
  widen(c0, p0);
  widen(c1, p1);
  widen(c0, p2);
  widen(c1, p3);
  to_products();
}

// The steps above, by rows and group.
template <int Rows, int Group, bool Reload, bool Wide>
SGL_RVV_INLINE void step_two(Sums& c0, Sums& c1, Codes& codes, const int8_t* a, Weights& w0,
                             Weights& w1, Weights& w2, Weights& w3, Weights& w4, Weights& w5,
                             Weights& w6, Weights& w7, const int8_t* next) {
  if constexpr (Rows == 2) {
    step_two_rows<Reload, Wide>(c0, c1, codes, a, w0, w1, w2, w3, w4, w5, w6, w7, next);
  } else if constexpr (Group == 4) {
    step_one_row<Reload, Wide>(c0, c1, codes, a, w0, w1, w2, w3, w4, w5, w6, w7, next);
  } else {
    step_one_row_pairs<Reload, Wide>(c0, c1, codes, a, w0, w1, w2, w3, w4, w5, w6, w7, next);
  }
}

// Where the first code of each chain of step_two() is.
template <int Rows, int Group>
SGL_RVV_INLINE Codes first_of_two(const int8_t* a) {
  if constexpr (Rows == 2) {
    return {load_code(a), load_code(a + kRow), load_code(a + 4), load_code(a + kRow + 4)};
  } else if constexpr (Group == 4) {
    return {load_code(a), load_code(a + 4), 0, 0};
  } else {
    return {load_code(a), load_code(a + 2), load_code(a + 4), load_code(a + 6)};
  }
}

constexpr int64_t kQuadBytes = kQuad * kBlockColumns;

// `quads` quads, an even number, of a run. Leaves `a` and `w` behind them.
template <int Rows, int Group, bool Wide>
SGL_RVV_INLINE void add_twos(Sums& c0, Sums& c1, const int8_t*& a, const int8_t*& w,
                             int64_t quads) {
  Weights w0, w1, w2, w3, w4, w5, w6, w7;
  load_quad<Wide>(w, w0, w1, w2, w3);
  load_quad<Wide>(w + kQuadBytes, w4, w5, w6, w7);
  Codes codes = first_of_two<Rows, Group>(a);
  for (; quads > 2; quads -= 2, a += 2 * kQuad) {
    w += 2 * kQuadBytes;
    step_two<Rows, Group, true, Wide>(c0, c1, codes, a, w0, w1, w2, w3, w4, w5, w6, w7, w);
  }
  step_two<Rows, Group, false, Wide>(c0, c1, codes, a, w0, w1, w2, w3, w4, w5, w6, w7, w);
  a += 2 * kQuad;
  w += 2 * kQuadBytes;
}

// `quads` quads of one run, at least one.
template <int Rows, int Group, bool Wide>
SGL_RVV_INLINE void add_run(Sums& c0, Sums& c1, Sums& c2, Sums& c3, Sums& c4, Sums& c5,
                            const int8_t* a, const int8_t* w, int64_t quads) {
  if constexpr ((Rows == 1 && Group >= 2) || (Rows == 2 && Group == 4)) {
    if (quads >= 2) add_twos<Rows, Group, Wide>(c0, c1, a, w, quads / 2 * 2);
    quads %= 2;
    if (quads == 0) return;
  }
  Weights w0, w1, w2, w3;
  load_quad<Wide>(w, w0, w1, w2, w3);
  Codes codes = {load_code(a), 0, 0, 0};
  if constexpr (Rows > 1) codes.c1 = load_code(a + kRow);
  if constexpr (Rows > 2) codes.c2 = load_code(a + 2 * kRow);
  if constexpr (Rows > 3) codes.c3 = load_code(a + 3 * kRow);
  for (; quads > 1; --quads, a += kQuad) {
    w += kQuadBytes;
    step<Rows, Group, true, Wide>(c0, c1, c2, c3, c4, c5, codes, a, w0, w1, w2, w3, w);
  }
  step<Rows, Group, false, Wide>(c0, c1, c2, c3, c4, c5, codes, a, w0, w1, w2, w3, w);
}

// One k: what is left where K is no multiple of 4.
template <int Rows>
SGL_RVV_INLINE void add_one(Sums& c0, Sums& c1, Sums& c2, Sums& c3, Sums& c4, Sums& c5,
                            const int8_t* a, const int8_t* w) {
  const Weights row = load_row(w);
  const auto add = [&](Sums& sums, int64_t of) {
    Products products;
    int64_t code = load_code(a + of * kRow);
    multiply<true>(products, code, row, a);
    to_sums();
    widen(sums, products);
    to_products();
  };
  add(c0, 0);
  if constexpr (Rows > 1) add(c1, 1);
  if constexpr (Rows > 2) add(c2, 2);
  if constexpr (Rows > 3) add(c3, 3);
  if constexpr (Rows > 4) add(c4, 4);
  if constexpr (Rows > 5) add(c5, 5);
}

// Adds `k` rows of the weight at `w`, times the panels at `a` of a tile of `Rows` rows, to `sums`
// ([Rows][32]), or to nothing where not `resume`.
template <int Rows, bool Wide>
void accumulate(const int8_t* a, const Int8Run* runs, const int8_t* w, int64_t k, int32_t* sums,
                bool resume, size_t vl) {
  const Sums zero = __riscv_vmv_v_x_i32m4(0, vl);
  Sums c0 = zero, c1 = zero, c2 = zero, c3 = zero, c4 = zero, c5 = zero;
  const auto load = [&](int64_t row) {
    return __riscv_vle32_v_i32m4(sums + row * kBlockColumns, vl);
  };
  if (resume) {
    c0 = load(0);
    if constexpr (Rows > 1) c1 = load(1);
    if constexpr (Rows > 2) c2 = load(2);
    if constexpr (Rows > 3) c3 = load(3);
    if constexpr (Rows > 4) c4 = load(4);
    if constexpr (Rows > 5) c5 = load(5);
  }
  begin_products(vl);
  for (; k > 0; k -= kInt8PanelDepth) {
    const int64_t depth = k < kInt8PanelDepth ? k : kInt8PanelDepth;
    const int8_t* left = a;
    const Int8Run* run = runs;
    for (int64_t quads = depth / kQuad; quads > 0; quads -= run->quads, ++run) {
      if (run->group == 4) {
        add_run<Rows, 4, Wide>(c0, c1, c2, c3, c4, c5, left, w, run->quads);
      } else if (run->group == 2) {
        add_run<Rows, 2, Wide>(c0, c1, c2, c3, c4, c5, left, w, run->quads);
      } else {
        add_run<Rows, 1, Wide>(c0, c1, c2, c3, c4, c5, left, w, run->quads);
      }
      left += run->quads * kQuad;
      w += run->quads * kQuad * kBlockColumns;
    }
    for (int64_t rest = depth % kQuad; rest > 0; --rest, ++left, w += kBlockColumns) {
      add_one<Rows>(c0, c1, c2, c3, c4, c5, left, w);
    }
    a += Rows * kInt8PanelDepth;
    runs += kPanelQuads;
  }
  if constexpr (Rows == 1) c0 = __riscv_vadd_vv_i32m4(c0, c1, vl);
  const auto store = [&](int64_t row, Sums sum) {
    __riscv_vse32_v_i32m4(sums + row * kBlockColumns, sum, vl);
  };
  store(0, c0);
  if constexpr (Rows > 1) store(1, c1);
  if constexpr (Rows > 2) store(2, c2);
  if constexpr (Rows > 3) store(3, c3);
  if constexpr (Rows > 4) store(4, c4);
  if constexpr (Rows > 5) store(5, c5);
}

// FP32 to BF16, to nearest even. `value` comes from arithmetic, so a NaN is the canonical one,
// which the increment leaves the canonical NaN of BF16.
SGL_RVV_INLINE vuint16m1_t bf16_of(vfloat32m2_t value, vbool16_t all, size_t vl) {
  const vuint32m2_t bits = __riscv_vreinterpret_v_f32m2_u32m2(value);
  const vuint32m2_t kept = __riscv_vsrl_vx_u32m2_m(all, bits, 16, vl);
  const vuint32m2_t increment =
      __riscv_vadd_vx_u32m2_m(all, __riscv_vand_vx_u32m2_m(all, kept, 1, vl), 0x7fff, vl);
  return __riscv_vnsrl_wx_u16m1(__riscv_vadd_vv_u32m2_m(all, bits, increment, vl), 16, vl);
}

SGL_RVV_INLINE void store(const Int8Linear& call, int64_t place, vfloat32m2_t value, size_t vl) {
  const vbool16_t all = all_lanes(vl);
  switch (call.out_type) {
    case Type::kBf16:
      __riscv_vse16_v_u16m1(static_cast<uint16_t*>(call.out) + place, bf16_of(value, all, vl), vl);
      return;
    case Type::kFp16:
      __riscv_vse16_v_u16m1(static_cast<uint16_t*>(call.out) + place,
                            __riscv_vncvt_x_x_w_u16m1(fp16_to_low_half(value, all, vl), vl), vl);
      return;
    default:
      __riscv_vse32_v_f32m2(static_cast<float*>(call.out) + place, value, vl);
  }
}

// Scales `rows` rows of sums of block `block`, adds the bias, rounds, and stores them from row
// `first_row` of the output on.
void finish(const Int8Linear& call, int64_t block, int64_t first_row, int64_t rows,
            const int32_t* sums) {
  const int64_t left_over = call.n - block * kBlockColumns;
  const int64_t columns = left_over < kBlockColumns ? left_over : kBlockColumns;
  for (int64_t column = 0; column < columns;) {
    const size_t vl = __riscv_vsetvl_e32m2(static_cast<size_t>(columns - column));
    const int64_t place = block * kBlockColumns + column;
    const vfloat32m2_t scales = __riscv_vle32_v_f32m2(call.weight_scales + place, vl);
    const vfloat32m2_t bias = call.bias == nullptr ? __riscv_vfmv_v_f_f32m2(0.0F, vl)
                                                   : __riscv_vle32_v_f32m2(call.bias + place, vl);
    for (int64_t row = 0; row < rows; ++row) {
      const vint32m2_t sum = __riscv_vle32_v_i32m2(sums + row * kBlockColumns + column, vl);
      vfloat32m2_t value = __riscv_vfcvt_f_x_v_f32m2(sum, vl);
      value = __riscv_vfmul_vf_f32m2(value, call.left_scales[first_row + row], vl);
      value = __riscv_vfmul_vv_f32m2(value, scales, vl);
      if (call.bias != nullptr) value = __riscv_vfadd_vv_f32m2(value, bias, vl);
      store(call, (first_row + row) * call.out_stride + place, value, vl);
    }
    column += static_cast<int64_t>(vl);
  }
}

using Accumulate = void(const int8_t* a, const Int8Run* runs, const int8_t* w, int64_t k,
                        int32_t* sums, bool resume, size_t vl);

// accumulate() for all 32 columns of a block.
void add_block(Accumulate* wide, Accumulate* narrow, const int8_t* a, const Int8Run* runs,
               const int8_t* w, int64_t k, int32_t* sums, bool resume) {
  if (__riscv_vsetvlmax_e8m1() == kWideBytes) {
    wide(a, runs, w, k, sums, resume, kWideBytes);
    return;
  }
  for (int64_t column = 0; column < kBlockColumns;) {
    const size_t vl = __riscv_vsetvl_e8m1(static_cast<size_t>(kBlockColumns - column));
    narrow(a, runs, w + column, k, sums + column, resume, vl);
    column += static_cast<int64_t>(vl);
  }
}

constexpr Accumulate* kWide[kInt8LargestTile] = {accumulate<1, true>, accumulate<2, true>,
                                                 accumulate<3, true>, accumulate<4, true>,
                                                 accumulate<5, true>, accumulate<6, true>};
constexpr Accumulate* kNarrow[kInt8LargestTile] = {accumulate<1, false>, accumulate<2, false>,
                                                   accumulate<3, false>, accumulate<4, false>,
                                                   accumulate<5, false>, accumulate<6, false>};

// One block of columns, rows [top, top + rows), which are whole tiles but for the last.
void add_tiles(const Int8Linear& call, int64_t block, int64_t top, int64_t rows, int32_t* sums) {
  const int8_t* w = call.weight + packed_block_offset(block, call.k);
  const int64_t panels = int8_panels(call.k);
  const int64_t tile_rows = int8_tile_rows(call.m);
  for (int64_t panel = 0; panel < panels; ++panel) {
    const int64_t begin = panel * kInt8PanelDepth;
    const int64_t depth = call.k - begin < kInt8PanelDepth ? call.k - begin : kInt8PanelDepth;
    for (int64_t row = 0; row < rows; row += tile_rows) {
      const int64_t count = rows - row < tile_rows ? rows - row : tile_rows;
      const int64_t tile = (top + row) / tile_rows;
      add_block(kWide[count - 1], kNarrow[count - 1],
                call.codes + ((top + row) * panels + panel * count) * kInt8PanelDepth,
                call.runs + (tile * panels + panel) * kPanelQuads, w + begin * kBlockColumns, depth,
                sums + row * kBlockColumns, panel > 0);
    }
  }
}

}  // namespace

template <int Rows>
void int8_linear_grouped_rvv(const Int8Linear& call, int64_t block_begin, int64_t block_end) {
  const NearestRounding nearest;
  alignas(64) int32_t sums[Rows * kBlockColumns];
  for (int64_t block = block_begin; block < block_end; ++block) {
    add_block(accumulate<Rows, true>, accumulate<Rows, false>, call.codes, call.runs,
              call.weight + packed_block_offset(block, call.k), call.k, sums, false);
    finish(call, block, 0, Rows, sums);
  }
}

template Int8LinearKernel int8_linear_grouped_rvv<1>;
template Int8LinearKernel int8_linear_grouped_rvv<2>;
template Int8LinearKernel int8_linear_grouped_rvv<3>;
template Int8LinearKernel int8_linear_grouped_rvv<4>;
template Int8LinearKernel int8_linear_grouped_rvv<5>;
template Int8LinearKernel int8_linear_grouped_rvv<6>;

void int8_linear_grouped_blocked_rvv(const Int8Linear& call, int64_t block_begin,
                                     int64_t block_end) {
  const NearestRounding nearest;
  alignas(64) int32_t sums[kGroupRows * kBlockColumns];
  for (int64_t block = block_begin; block < block_end; ++block) {
    for (int64_t top = 0; top < call.m; top += kGroupRows) {
      const int64_t rows = call.m - top < kGroupRows ? call.m - top : kGroupRows;
      add_tiles(call, block, top, rows, sums);
      finish(call, block, top, rows, sums);
    }
  }
}

}  // namespace sgl_rvv
