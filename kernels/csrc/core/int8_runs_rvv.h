// The inner loops of int8_linear_rvv.cpp, as assembly: runs of quads in groups of 4 and of 2.
//
// The order of instructions is the point. An in-order core waits for a product before it can add to
// it, for a code before it can multiply with it, and for weights: so the chains of products of
// different rows (or, of one and two rows, of two quads) alternate, a code is loaded right after
// the last use of its register, and a pair of weights after its last product. Compilers gather the
// loads in front of their first use, and make a product right before the one that it is added to:
// what is 5 to 9 multiply-adds per cycle here is 4 to 7 from them (modelled). And vl and vtype have
// to be known throughout, which a compiler may change for its own copies between two statements.
//
// Registers: v0 to v7 hold weights, one k each. Products are in v24 to v31, two registers for each
// chain; of five and six rows, whose sums leave less, in v4 to v7 (and v28). Sums and codes are
// where the compiler puts them.
//
// Text is composed by macros, as templates cannot; they end with this file.
#pragma once

#include <riscv_vector.h>

#include <cstdint>

#include "core/int8_linear.h"

namespace sgl_rvv {

// clang-format off
#define SGL_MUL(p, w, x, next) \
  "vwmul.vx " p ", " w ", %[" x "]\n\tlb %[" x "], " next "(%[a])\n\t"
#define SGL_MAC(p, w, x, next) \
  "vwmacc.vx " p ", %[" x "], " w "\n\tlb %[" x "], " next "(%[a])\n\t"
#define SGL_CODE(x, at) "lb %[" x "], " at "(%[a])\n\t"
#define SGL_WIDEN(c, p) "vwadd.wv %[" c "], %[" c "], " p "\n\t"
#define SGL_TO_16 "vsetvli zero, zero, e16, m2, ta, ma\n\t"
#define SGL_TO_8 "vsetvli zero, zero, e8, m1, ta, ma\n\t"

// Two k of weights from %[w] on, which moves behind them. Where they fill two registers: as one.
#define SGL_WIDE(first, second) "vl2re8.v " first ", (%[w])\n\taddi %[w], %[w], 64\n\t"
#define SGL_NARROW(first, second)                       \
  "vle8.v " first ", (%[w])\n\taddi %[w], %[w], 32\n\t" \
  "vle8.v " second ", (%[w])\n\taddi %[w], %[w], 32\n\t"
#define SGL_NOTHING(first, second) ""

// A loop of `step` that loads the next weights; the last time it does not. `codes` are the first,
// `load_all` the first weights, `bytes` how far %[a] moves.
#define SGL_LOOP(step, load, load_all, codes, bytes)                            \
  "vsetvli zero, %[vl], e8, m1, ta, ma\n\t" load_all codes                      \
  "beq %[a], %[end], 2f\n\t"                                                    \
  "1:\n\t" step(load) "addi %[a], %[a], " bytes "\n\tbne %[a], %[end], 1b\n\t"  \
  "2:\n\t" step(SGL_NOTHING)
#define SGL_LOAD_QUAD(load) load("v0", "v1") load("v2", "v3")
#define SGL_LOAD_TWO(load) load("v0", "v1") load("v2", "v3") load("v4", "v5") load("v6", "v7")

// One k of 1 to 4 rows, whose next codes lie at `next`.
#define SGL_ROWS_1(op, w, next) op("v24", w, "x0", next)
#define SGL_ROWS_2(op, w, next) SGL_ROWS_1(op, w, next) op("v26", w, "x1", "256+" next)
#define SGL_ROWS_3(op, w, next) SGL_ROWS_2(op, w, next) op("v28", w, "x2", "512+" next)
#define SGL_ROWS_4(op, w, next) SGL_ROWS_3(op, w, next) op("v30", w, "x3", "768+" next)
#define SGL_WIDEN_1 SGL_WIDEN("c0", "v24")
#define SGL_WIDEN_2 SGL_WIDEN_1 SGL_WIDEN("c1", "v26")
#define SGL_WIDEN_3 SGL_WIDEN_2 SGL_WIDEN("c2", "v28")
#define SGL_WIDEN_4 SGL_WIDEN_3 SGL_WIDEN("c3", "v30")
#define SGL_CODES_1 SGL_CODE("x0", "0")
#define SGL_CODES_2 SGL_CODES_1 SGL_CODE("x1", "256")
#define SGL_CODES_3 SGL_CODES_2 SGL_CODE("x2", "512")
#define SGL_CODES_4 SGL_CODES_3 SGL_CODE("x3", "768")

// A quad in one group, or in two, of rows that `rows` multiplies and `widen` adds up.
#define SGL_FOUR(rows, widen, load)                                   \
  rows(SGL_MUL, "v0", "1") rows(SGL_MAC, "v1", "2") load("v0", "v1")  \
  rows(SGL_MAC, "v2", "3") rows(SGL_MAC, "v3", "4") load("v2", "v3")  \
  SGL_TO_16 widen SGL_TO_8
#define SGL_PAIRS(rows, widen, load)                                  \
  rows(SGL_MUL, "v0", "1") rows(SGL_MAC, "v1", "2") load("v0", "v1")  \
  SGL_TO_16 widen SGL_TO_8                                            \
  rows(SGL_MUL, "v2", "3") rows(SGL_MAC, "v3", "4") load("v2", "v3")  \
  SGL_TO_16 widen SGL_TO_8
#define SGL_FOUR_1(load) SGL_FOUR(SGL_ROWS_1, SGL_WIDEN_1, load)
#define SGL_FOUR_2(load) SGL_FOUR(SGL_ROWS_2, SGL_WIDEN_2, load)
#define SGL_FOUR_3(load) SGL_FOUR(SGL_ROWS_3, SGL_WIDEN_3, load)
#define SGL_FOUR_4(load) SGL_FOUR(SGL_ROWS_4, SGL_WIDEN_4, load)
#define SGL_PAIRS_1(load) SGL_PAIRS(SGL_ROWS_1, SGL_WIDEN_1, load)
#define SGL_PAIRS_2(load) SGL_PAIRS(SGL_ROWS_2, SGL_WIDEN_2, load)
#define SGL_PAIRS_3(load) SGL_PAIRS(SGL_ROWS_3, SGL_WIDEN_3, load)
#define SGL_PAIRS_4(load) SGL_PAIRS(SGL_ROWS_4, SGL_WIDEN_4, load)

// Two quads of one row in groups of 4 (two chains) and of 2 (four), and of two rows in groups of 4.
#define SGL_ONE(op, first, second, next, after) \
  op("v24", first, "x0", next) op("v26", second, "x1", after)
#define SGL_TWO_FOUR_1(load)                                                      \
  SGL_ONE(SGL_MUL, "v0", "v4", "1", "5") SGL_ONE(SGL_MAC, "v1", "v5", "2", "6")   \
  load("v0", "v1")                                                                \
  SGL_ONE(SGL_MAC, "v2", "v6", "3", "7") SGL_ONE(SGL_MAC, "v3", "v7", "8", "12")  \
  load("v2", "v3") load("v4", "v5") load("v6", "v7")                              \
  SGL_TO_16 SGL_WIDEN("c0", "v24") SGL_WIDEN("c1", "v26") SGL_TO_8
#define SGL_TWO_PAIRS_1(load)                                      \
  SGL_MUL("v24", "v0", "x0", "1") SGL_MUL("v26", "v2", "x1", "3")  \
  SGL_MUL("v28", "v4", "x2", "5") SGL_MUL("v30", "v6", "x3", "7")  \
  SGL_MAC("v24", "v1", "x0", "8") load("v0", "v1")                 \
  SGL_MAC("v26", "v3", "x1", "10") load("v2", "v3")                \
  SGL_MAC("v28", "v5", "x2", "12") load("v4", "v5")                \
  SGL_MAC("v30", "v7", "x3", "14") load("v6", "v7")                \
  SGL_TO_16 SGL_WIDEN("c0", "v24") SGL_WIDEN("c1", "v26")          \
  SGL_WIDEN("c0", "v28") SGL_WIDEN("c1", "v30") SGL_TO_8
#define SGL_BOTH(op, first, second, next, after)                    \
  op("v24", first, "x0", next) op("v26", first, "x1", "256+" next)  \
  op("v28", second, "x2", after) op("v30", second, "x3", "256+" after)
#define SGL_TWO_FOUR_2(load)                                                        \
  SGL_BOTH(SGL_MUL, "v0", "v4", "1", "5") SGL_BOTH(SGL_MAC, "v1", "v5", "2", "6")   \
  load("v0", "v1")                                                                  \
  SGL_BOTH(SGL_MAC, "v2", "v6", "3", "7") SGL_BOTH(SGL_MAC, "v3", "v7", "8", "12")  \
  load("v2", "v3") load("v4", "v5") load("v6", "v7")                                \
  SGL_TO_16 SGL_WIDEN("c0", "v24") SGL_WIDEN("c1", "v26")                           \
  SGL_WIDEN("c0", "v28") SGL_WIDEN("c1", "v30") SGL_TO_8

// Five rows as two and three, six as three times two: rows from `row` on (their offset as text) of
// which the last code leads to those from `then` on.
#define SGL_PART_2(op, w, next) op("v4", w, "x0", next) op("v6", w, "x1", "256+" next)
#define SGL_PART_3(op, w, next) SGL_PART_2(op, w, next) op("v28", w, "x2", "512+" next)
#define SGL_PART_FOUR(part, row, then, load, widen)                             \
  part(SGL_MUL, "v0", row "+1") part(SGL_MAC, "v1", row "+2") load("v0", "v1")  \
  part(SGL_MAC, "v2", row "+3") part(SGL_MAC, "v3", then) load("v2", "v3")      \
  SGL_TO_16 widen SGL_TO_8
#define SGL_PART_PAIRS(part, row, then, load, widen)                            \
  part(SGL_MUL, "v0", row "+1") part(SGL_MAC, "v1", row "+2") load("v0", "v1")  \
  SGL_TO_16 widen SGL_TO_8                                                      \
  part(SGL_MUL, "v2", row "+3") part(SGL_MAC, "v3", then) load("v2", "v3")      \
  SGL_TO_16 widen SGL_TO_8
#define SGL_PART_WIDEN(c, d) SGL_WIDEN(c, "v4") SGL_WIDEN(d, "v6")
#define SGL_FIVE(part, load)                                             \
  part(SGL_PART_2, "0", "512", SGL_NOTHING, SGL_PART_WIDEN("c0", "c1"))  \
  SGL_CODE("x2", "1024")                                                 \
  part(SGL_PART_3, "512", "4", load, SGL_PART_WIDEN("c2", "c3") SGL_WIDEN("c4", "v28"))
#define SGL_SIX(part, load)                                                    \
  part(SGL_PART_2, "0", "512", SGL_NOTHING, SGL_PART_WIDEN("c0", "c1"))        \
  part(SGL_PART_2, "512", "1024", SGL_NOTHING, SGL_PART_WIDEN("c2", "c3"))     \
  part(SGL_PART_2, "1024", "4", load, SGL_PART_WIDEN("c4", "c5"))
#define SGL_FOUR_5(load) SGL_FIVE(SGL_PART_FOUR, load)
#define SGL_PAIRS_5(load) SGL_FIVE(SGL_PART_PAIRS, load)
#define SGL_FOUR_6(load) SGL_SIX(SGL_PART_FOUR, load)
#define SGL_PAIRS_6(load) SGL_SIX(SGL_PART_PAIRS, load)

#define SGL_SUM(n) [c##n] "+vr"(c##n)
#define SGL_SUMS_1 SGL_SUM(0)
#define SGL_SUMS_2 SGL_SUMS_1, SGL_SUM(1)
#define SGL_SUMS_3 SGL_SUMS_2, SGL_SUM(2)
#define SGL_SUMS_4 SGL_SUMS_3, SGL_SUM(3)
#define SGL_SUMS_5 SGL_SUMS_4, SGL_SUM(4)
#define SGL_SUMS_6 SGL_SUMS_5, SGL_SUM(5)

// The statement: `step` until %[a] is at `end`, where one more is made.
#define SGL_ASM(step, load, load_all, codes, bytes, sums, ...)                             \
  asm volatile(SGL_LOOP(step, load, load_all(load), codes, bytes)                          \
               : SGL_SUMS_##sums, [a] "+&r"(a), [w] "+&r"(w), [x0] "=&r"(x0),              \
                 [x1] "=&r"(x1), [x2] "=&r"(x2), [x3] "=&r"(x3)                            \
               : [end] "r"(end), [vl] "r"(vl)                                              \
               : "memory", "vl", "vtype", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7",  \
                 __VA_ARGS__)
#define SGL_RUN(step, load_all, codes, bytes, sums, ...)                 \
  if constexpr (Wide) {                                                  \
    SGL_ASM(step, SGL_WIDE, load_all, codes, bytes, sums, __VA_ARGS__);  \
  } else {                                                               \
    SGL_ASM(step, SGL_NARROW, load_all, codes, bytes, sums, __VA_ARGS__);\
  }
#define SGL_PRODUCTS "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
// clang-format on

// The statements of two branches differ in their text only, which clang-tidy does not look at.
// NOLINTBEGIN(bugprone-branch-clone)

// Adds `quads` (1 or more) quads of codes at `a` ([Rows][256]) times the weights at `w` ([.][32])
// to the sums of `Rows` rows, in groups of `Group` (4 or 2) k. `Wide`: a register has 32 bytes, as
// `vl` has. One row's sums are c0 + c1.
template <int Rows, int Group, bool Wide>
inline __attribute__((always_inline)) void add_quads(vint32m4_t& c0, vint32m4_t& c1, vint32m4_t& c2,
                                                     vint32m4_t& c3, vint32m4_t& c4, vint32m4_t& c5,
                                                     const int8_t* a, const int8_t* w,
                                                     int64_t quads, size_t vl) {
  static_assert(kInt8PanelDepth == 256 && kBlockColumns == 32 && kQuad == 4, "offsets above");
  static_assert(Group == 4 || Group == 2, "no such loop");
  int64_t x0, x1, x2, x3;
  if constexpr (Rows == 1 || (Rows == 2 && Group == 4)) {
    // By twos, as long as there are two.
    const int8_t* const end = a + (quads / 2 - 1) * 2 * kQuad;
    if (quads >= 2) {
      if constexpr (Rows == 2) {
        SGL_RUN(SGL_TWO_FOUR_2, SGL_LOAD_TWO, SGL_CODES_2 SGL_CODE("x2", "4") SGL_CODE("x3", "260"),
                "8", 2, SGL_PRODUCTS)
      } else if constexpr (Group == 4) {
        SGL_RUN(SGL_TWO_FOUR_1, SGL_LOAD_TWO, SGL_CODES_1 SGL_CODE("x1", "4"), "8", 2, SGL_PRODUCTS)
      } else {
        SGL_RUN(SGL_TWO_PAIRS_1, SGL_LOAD_TWO,
                SGL_CODES_1 SGL_CODE("x1", "2") SGL_CODE("x2", "4") SGL_CODE("x3", "6"), "8", 2,
                SGL_PRODUCTS)
      }
      a = end + 2 * kQuad;
    }
    if (quads % 2 == 0) return;
    quads = 1;
  }
  const int8_t* const end = a + (quads - 1) * kQuad;
  if constexpr (Group == 4) {
    if constexpr (Rows == 1) {
      SGL_RUN(SGL_FOUR_1, SGL_LOAD_QUAD, SGL_CODES_1, "4", 1, SGL_PRODUCTS)
    } else if constexpr (Rows == 2) {
      SGL_RUN(SGL_FOUR_2, SGL_LOAD_QUAD, SGL_CODES_2, "4", 2, SGL_PRODUCTS)
    } else if constexpr (Rows == 3) {
      SGL_RUN(SGL_FOUR_3, SGL_LOAD_QUAD, SGL_CODES_3, "4", 3, SGL_PRODUCTS)
    } else if constexpr (Rows == 4) {
      SGL_RUN(SGL_FOUR_4, SGL_LOAD_QUAD, SGL_CODES_4, "4", 4, SGL_PRODUCTS)
    } else if constexpr (Rows == 5) {
      SGL_RUN(SGL_FOUR_5, SGL_LOAD_QUAD, SGL_CODES_2, "4", 5, "v28", "v29", "v30", "v31")
    } else if constexpr (Rows == 6) {
      SGL_RUN(SGL_FOUR_6, SGL_LOAD_QUAD, SGL_CODES_2, "4", 6, "cc")
    }
  } else {
    if constexpr (Rows == 1) {
      SGL_RUN(SGL_PAIRS_1, SGL_LOAD_QUAD, SGL_CODES_1, "4", 1, SGL_PRODUCTS)
    } else if constexpr (Rows == 2) {
      SGL_RUN(SGL_PAIRS_2, SGL_LOAD_QUAD, SGL_CODES_2, "4", 2, SGL_PRODUCTS)
    } else if constexpr (Rows == 3) {
      SGL_RUN(SGL_PAIRS_3, SGL_LOAD_QUAD, SGL_CODES_3, "4", 3, SGL_PRODUCTS)
    } else if constexpr (Rows == 4) {
      SGL_RUN(SGL_PAIRS_4, SGL_LOAD_QUAD, SGL_CODES_4, "4", 4, SGL_PRODUCTS)
    } else if constexpr (Rows == 5) {
      SGL_RUN(SGL_PAIRS_5, SGL_LOAD_QUAD, SGL_CODES_2, "4", 5, "v28", "v29", "v30", "v31")
    } else if constexpr (Rows == 6) {
      SGL_RUN(SGL_PAIRS_6, SGL_LOAD_QUAD, SGL_CODES_2, "4", 6, "cc")
    }
  }
}

// NOLINTEND(bugprone-branch-clone)

}  // namespace sgl_rvv

#undef SGL_MUL
#undef SGL_MAC
#undef SGL_CODE
#undef SGL_WIDEN
#undef SGL_TO_16
#undef SGL_TO_8
#undef SGL_WIDE
#undef SGL_NARROW
#undef SGL_NOTHING
#undef SGL_LOOP
#undef SGL_LOAD_QUAD
#undef SGL_LOAD_TWO
#undef SGL_ROWS_1
#undef SGL_ROWS_2
#undef SGL_ROWS_3
#undef SGL_ROWS_4
#undef SGL_WIDEN_1
#undef SGL_WIDEN_2
#undef SGL_WIDEN_3
#undef SGL_WIDEN_4
#undef SGL_CODES_1
#undef SGL_CODES_2
#undef SGL_CODES_3
#undef SGL_CODES_4
#undef SGL_FOUR
#undef SGL_PAIRS
#undef SGL_FOUR_1
#undef SGL_FOUR_2
#undef SGL_FOUR_3
#undef SGL_FOUR_4
#undef SGL_PAIRS_1
#undef SGL_PAIRS_2
#undef SGL_PAIRS_3
#undef SGL_PAIRS_4
#undef SGL_ONE
#undef SGL_TWO_FOUR_1
#undef SGL_TWO_PAIRS_1
#undef SGL_BOTH
#undef SGL_TWO_FOUR_2
#undef SGL_PART_2
#undef SGL_PART_3
#undef SGL_PART_FOUR
#undef SGL_PART_PAIRS
#undef SGL_PART_WIDEN
#undef SGL_FIVE
#undef SGL_SIX
#undef SGL_FOUR_5
#undef SGL_PAIRS_5
#undef SGL_FOUR_6
#undef SGL_PAIRS_6
#undef SGL_SUM
#undef SGL_SUMS_1
#undef SGL_SUMS_2
#undef SGL_SUMS_3
#undef SGL_SUMS_4
#undef SGL_SUMS_5
#undef SGL_SUMS_6
#undef SGL_ASM
#undef SGL_RUN
#undef SGL_PRODUCTS
