// "Widening": the packed linears of 16-bit weights that the machine multiplies as they are.
//
// A packed row of 32 numbers is one group (LMUL 2 at VLEN 256; at VLEN 128 a block is done in two
// halves of 16 columns, from the same bytes). A widening multiply-add takes it by one number of the
// left operand and adds to FP32, rounding once: the product is exact, so the sums are those of the
// FP32 kernels to the last bit. One row is loaded ahead of the multiplication.
//
// Two techniques, as in npair_rvv.h: widening, 1 to 6 rows, one pass over the weight; and
// widening_blocked, more rows, K in blocks of kDepth that stay in L1 while all tiles of six rows
// use them.
//
// `Format` has the scalar type Element, the vector type Row of LMUL 2, and load, multiply_add,
// store_rounded. It is a type of an unnamed namespace, so that nothing made here is shared with a
// file that is compiled for other extensions.
#pragma once

#include <riscv_vector.h>

#include <cstdint>

#include "core/packed_layout.h"
#include "core/packed_linear.h"
#include "core/prefetch_rvv.h"

namespace sgl_rvv::widening {

#define SGL_RVV_INLINE inline __attribute__((always_inline))

constexpr int64_t kDepth = 192;                 // 12 KiB of packed rows
constexpr int64_t kGroupRows = 22 * kTileRows;  // partial sums of 132 rows: 16.5 KiB
constexpr int64_t kRowSums = kBlockColumns;

using Sums = vfloat32m4_t;

// Vector registers cannot be members or array elements, hence the long lists.
template <class Format, int Rows>
SGL_RVV_INLINE void multiply_add(Sums& s0, Sums& s1, Sums& s2, Sums& s3, Sums& s4, Sums& s5,
                                 const typename Format::Element* a, typename Format::Row row,
                                 size_t vl) {
  s0 = Format::multiply_add(s0, a[0], row, vl);
  if constexpr (Rows > 1) s1 = Format::multiply_add(s1, a[1], row, vl);
  if constexpr (Rows > 2) s2 = Format::multiply_add(s2, a[2], row, vl);
  if constexpr (Rows > 3) s3 = Format::multiply_add(s3, a[3], row, vl);
  if constexpr (Rows > 4) s4 = Format::multiply_add(s4, a[4], row, vl);
  if constexpr (Rows > 5) s5 = Format::multiply_add(s5, a[5], row, vl);
}

// Adds `k` rows of the weight at `w`, times `a` ([k][Rows]), to `sums` ([Rows][32]), or to nothing
// where not `resume`. `Streams`: the weight comes from memory.
template <class Format, int Rows, bool Streams = false>
inline void accumulate(const typename Format::Element* a, const typename Format::Element* w,
                       int64_t k, float* sums, bool resume, size_t vl) {
  const Sums zero = __riscv_vfmv_v_f_f32m4(0.0F, vl);
  Sums s0 = zero, s1 = zero, s2 = zero, s3 = zero, s4 = zero, s5 = zero;
  if (resume) {
    s0 = __riscv_vle32_v_f32m4(sums, vl);
    if constexpr (Rows > 1) s1 = __riscv_vle32_v_f32m4(sums + kRowSums, vl);
    if constexpr (Rows > 2) s2 = __riscv_vle32_v_f32m4(sums + 2 * kRowSums, vl);
    if constexpr (Rows > 3) s3 = __riscv_vle32_v_f32m4(sums + 3 * kRowSums, vl);
    if constexpr (Rows > 4) s4 = __riscv_vle32_v_f32m4(sums + 4 * kRowSums, vl);
    if constexpr (Rows > 5) s5 = __riscv_vle32_v_f32m4(sums + 5 * kRowSums, vl);
  }
  typename Format::Row row = Format::load(w, vl);
  for (; k > 2; k -= 2, a += 2 * Rows, w += 2 * kBlockColumns) {
    if constexpr (Streams) {
      prefetch_ahead(w);
      prefetch_ahead(w + kBlockColumns);
    }
    const typename Format::Row next = Format::load(w + kBlockColumns, vl);
    multiply_add<Format, Rows>(s0, s1, s2, s3, s4, s5, a, row, vl);
    row = Format::load(w + 2 * kBlockColumns, vl);
    multiply_add<Format, Rows>(s0, s1, s2, s3, s4, s5, a + Rows, next, vl);
  }
  multiply_add<Format, Rows>(s0, s1, s2, s3, s4, s5, a, row, vl);
  if (k == 2) {
    row = Format::load(w + kBlockColumns, vl);
    multiply_add<Format, Rows>(s0, s1, s2, s3, s4, s5, a + Rows, row, vl);
  }
  __riscv_vse32_v_f32m4(sums, s0, vl);
  if constexpr (Rows > 1) __riscv_vse32_v_f32m4(sums + kRowSums, s1, vl);
  if constexpr (Rows > 2) __riscv_vse32_v_f32m4(sums + 2 * kRowSums, s2, vl);
  if constexpr (Rows > 3) __riscv_vse32_v_f32m4(sums + 3 * kRowSums, s3, vl);
  if constexpr (Rows > 4) __riscv_vse32_v_f32m4(sums + 4 * kRowSums, s4, vl);
  if constexpr (Rows > 5) __riscv_vse32_v_f32m4(sums + 5 * kRowSums, s5, vl);
}

// One row, two blocks of the weight at once, to `sums` ([2][32]): with one alone, each load would
// be waited for by the only multiply-add of its k.
template <class Format>
inline void accumulate_two_blocks(const typename Format::Element* a,
                                  const typename Format::Element* w0,
                                  const typename Format::Element* w1, int64_t k, float* sums,
                                  size_t vl) {
  Sums s0 = __riscv_vfmv_v_f_f32m4(0.0F, vl);
  Sums s1 = s0;
  typename Format::Row row0 = Format::load(w0, vl);
  typename Format::Row row1 = Format::load(w1, vl);
  for (; k > 1; --k, ++a) {
    w0 += kBlockColumns;
    w1 += kBlockColumns;
    prefetch_ahead_here(w0);
    prefetch_ahead_here(w1);
    s0 = Format::multiply_add(s0, *a, row0, vl);
    row0 = Format::load(w0, vl);
    s1 = Format::multiply_add(s1, *a, row1, vl);
    row1 = Format::load(w1, vl);
  }
  s0 = Format::multiply_add(s0, *a, row0, vl);
  s1 = Format::multiply_add(s1, *a, row1, vl);
  __riscv_vse32_v_f32m4(sums, s0, vl);
  __riscv_vse32_v_f32m4(sums + kRowSums, s1, vl);
}

template <class Format>
using Accumulate = void(const typename Format::Element* a, const typename Format::Element* w,
                        int64_t k, float* sums, bool resume, size_t vl);
template <class Format>
constexpr Accumulate<Format>* kTiles[kTileRows] = {accumulate<Format, 1>, accumulate<Format, 2>,
                                                   accumulate<Format, 3>, accumulate<Format, 4>,
                                                   accumulate<Format, 5>, accumulate<Format, 6>};

// The part of a block's columns that one pass over K computes: [column, column + vl).
struct Chunk {
  int64_t column;
  size_t vl;
};

SGL_RVV_INLINE Chunk chunk_at(int64_t column) {
  return {column, __riscv_vsetvl_e16m2(static_cast<size_t>(kBlockColumns - column))};
}

SGL_RVV_INLINE Chunk chunk_after(Chunk chunk) {
  return chunk_at(chunk.column + static_cast<int64_t>(chunk.vl));
}

// Adds the bias to `rows` rows of sums, rounds them, and stores them from row `first_row` of the
// output on.
template <class Format>
inline void finish(const PackedLinear& call, int64_t block, int64_t first_row, int64_t rows,
                   const float* sums, Chunk chunk) {
  const int64_t first = block * kBlockColumns + chunk.column;
  int64_t columns = call.n - first;
  if (columns > static_cast<int64_t>(chunk.vl)) columns = static_cast<int64_t>(chunk.vl);
  if (columns <= 0) return;
  const auto vl = static_cast<size_t>(columns);
  auto* out =
      reinterpret_cast<typename Format::Element*>(call.out) + first_row * call.out_stride + first;
  for (int64_t row = 0; row < rows; ++row, out += call.out_stride) {
    Sums sum = __riscv_vle32_v_f32m4(sums + row * kRowSums, vl);
    if (call.bias != nullptr) {
      sum = __riscv_vfadd_vv_f32m4(sum, __riscv_vle32_v_f32m4(call.bias + first, vl), vl);
    }
    Format::store_rounded(out, sum, vl);
  }
}

template <class Format>
inline const typename Format::Element* block_rows(const PackedLinear& call, int64_t block) {
  return reinterpret_cast<const typename Format::Element*>(call.weight +
                                                           packed_block_offset(block, call.k));
}

// Exactly `Rows` rows.
template <class Format, int Rows>
inline void linear(const PackedLinear& call, int64_t block_begin, int64_t block_end) {
  alignas(64) float sums[(Rows + 1) * kRowSums];
  const auto* left = static_cast<const typename Format::Element*>(call.left);
  int64_t block = block_begin;
  if constexpr (Rows == 1) {
    for (; block + 2 <= block_end; block += 2) {
      for (Chunk chunk = chunk_at(0); chunk.column < kBlockColumns; chunk = chunk_after(chunk)) {
        accumulate_two_blocks<Format>(left, block_rows<Format>(call, block) + chunk.column,
                                      block_rows<Format>(call, block + 1) + chunk.column, call.k,
                                      sums + chunk.column, chunk.vl);
        finish<Format>(call, block, 0, 1, sums + chunk.column, chunk);
        finish<Format>(call, block + 1, 0, 1, sums + kRowSums + chunk.column, chunk);
      }
    }
  }
  for (; block < block_end; ++block) {
    const typename Format::Element* w = block_rows<Format>(call, block);
    for (Chunk chunk = chunk_at(0); chunk.column < kBlockColumns; chunk = chunk_after(chunk)) {
      accumulate<Format, Rows, true>(left, w + chunk.column, call.k, sums + chunk.column, false,
                                     chunk.vl);
      finish<Format>(call, block, 0, Rows, sums + chunk.column, chunk);
    }
  }
}

// Any number of rows.
template <class Format>
inline void blocked(const PackedLinear& call, int64_t block_begin, int64_t block_end) {
  alignas(64) float sums[kGroupRows * kRowSums];
  const auto* left = static_cast<const typename Format::Element*>(call.left);
  for (int64_t block = block_begin; block < block_end; ++block) {
    const typename Format::Element* w = block_rows<Format>(call, block);
    for (int64_t top = 0; top < call.m; top += kGroupRows) {
      const int64_t bottom = top + kGroupRows < call.m ? top + kGroupRows : call.m;
      for (Chunk chunk = chunk_at(0); chunk.column < kBlockColumns; chunk = chunk_after(chunk)) {
        for (int64_t begin = 0; begin < call.k; begin += kDepth) {
          const int64_t depth = begin + kDepth < call.k ? kDepth : call.k - begin;
          for (int64_t row = top; row < bottom; row += kTileRows) {
            const int64_t rows = row + kTileRows < bottom ? kTileRows : bottom - row;
            kTiles<Format>[rows - 1](
                left + row* call.k + begin* rows, w + begin* kBlockColumns + chunk.column, depth,
                sums + (row - top)* kRowSums + chunk.column, begin > 0, chunk.vl);
          }
        }
        finish<Format>(call, block, top, bottom - top, sums + chunk.column, chunk);
      }
    }
  }
}

}  // namespace sgl_rvv::widening
