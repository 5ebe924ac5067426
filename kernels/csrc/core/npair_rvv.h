// "N-pair": the packed linears of 16-bit weights on FP32 vectors, RVV 1.0 and nothing more.
//
// A packed row of 32 weights is read as 16 lanes of 32 bits. A lane's two halves are two
// neighbouring columns; each half becomes an FP32 in its own lane (`Lanes` says how), so that
// nothing is permuted, and the results are put together again lane by lane. Three stages overlap:
// row k + 2 is loaded, row k + 1 converted (integer unit), row k multiplied (FP unit), while 2 *
// Rows accumulators stay in registers. Groups are LMUL 2: 16 lanes need VLEN >= 256; at VLEN 128 a
// block is done in two halves of 8 lanes, from the same bytes.
//
// Two techniques:
//   npair, 1 to 6 rows: one pass over the weight as it streams by.
//   npair_blocked, more rows: K in blocks of kDepth, short enough that a block's packed rows stay
//   in L1 while all tiles of six rows use them; partial sums wait in a scratch. The weight comes
//   from memory once for each kGroupRows rows.
//
// For files that are compiled with V. `Lanes` is a type of an unnamed namespace, so that nothing
// made here is shared with a file that is compiled without.
#pragma once

#include <riscv_vector.h>

#include <cstdint>

#include "core/all_lanes_rvv.h"
#include "core/packed_layout.h"
#include "core/packed_linear.h"
#include "core/prefetch_rvv.h"

namespace sgl_rvv::npair {

constexpr int64_t kLanes = kBlockColumns / 2;
constexpr uint32_t kHighHalf = 0xffff0000U;
constexpr int64_t kDepth = 192;                 // 12 KiB of packed rows
constexpr int64_t kGroupRows = 22 * kTileRows;  // partial sums of 132 rows: 16.5 KiB

using Float = vfloat32m2_t;
using Bits = vuint32m2_t;
using Mask = vbool16_t;

#define SGL_RVV_INLINE inline __attribute__((always_inline))

SGL_RVV_INLINE Bits load_bits(const uint32_t* row, size_t vl) {
  return __riscv_vle32_v_u32m2(row, vl);
}

SGL_RVV_INLINE Float load_float(const float* row, size_t vl) {
  return __riscv_vle32_v_f32m2(row, vl);
}

// The part of a block's columns that one pass over K computes: lanes [lane, lane + vl) are columns
// [2 * lane, 2 * (lane + vl)) of the block.
struct Chunk {
  int64_t lane;
  size_t vl;
};

SGL_RVV_INLINE Chunk chunk_at(int64_t lane) {
  return {lane, __riscv_vsetvl_e32m2(static_cast<size_t>(kLanes - lane))};
}

SGL_RVV_INLINE Chunk chunk_after(Chunk chunk) {
  return chunk_at(chunk.lane + static_cast<int64_t>(chunk.vl));
}

SGL_RVV_INLINE const uint32_t* block_rows(const PackedLinear& call, int64_t block) {
  return reinterpret_cast<const uint32_t*>(call.weight + packed_block_offset(block, call.k));
}

// Partial sums of one row of a block lie as [2][kLanes]: even columns, odd columns.
constexpr int64_t kRowSums = kBlockColumns;

SGL_RVV_INLINE void load_sums(const float* sums, int64_t row, Float& even, Float& odd, size_t vl) {
  even = load_float(sums + row * kRowSums, vl);
  odd = load_float(sums + row * kRowSums + kLanes, vl);
}

SGL_RVV_INLINE void store_sums(float* sums, int64_t row, Float even, Float odd, size_t vl) {
  __riscv_vse32_v_f32m2(sums + row * kRowSums, even, vl);
  __riscv_vse32_v_f32m2(sums + row * kRowSums + kLanes, odd, vl);
}

// Adds one k: `f` holds the Rows values of the left operand. Vector registers cannot be members or
// array elements, hence the long list.
template <int Rows>
SGL_RVV_INLINE void multiply_add(Float& e0, Float& e1, Float& e2, Float& e3, Float& e4, Float& e5,
                                 Float& o0, Float& o1, Float& o2, Float& o3, Float& o4, Float& o5,
                                 const float* f, Float even, Float odd, size_t vl) {
  e0 = __riscv_vfmacc_vf_f32m2(e0, f[0], even, vl);
  if constexpr (Rows > 1) e1 = __riscv_vfmacc_vf_f32m2(e1, f[1], even, vl);
  if constexpr (Rows > 2) e2 = __riscv_vfmacc_vf_f32m2(e2, f[2], even, vl);
  if constexpr (Rows > 3) e3 = __riscv_vfmacc_vf_f32m2(e3, f[3], even, vl);
  if constexpr (Rows > 4) e4 = __riscv_vfmacc_vf_f32m2(e4, f[4], even, vl);
  if constexpr (Rows > 5) e5 = __riscv_vfmacc_vf_f32m2(e5, f[5], even, vl);
  o0 = __riscv_vfmacc_vf_f32m2(o0, f[0], odd, vl);
  if constexpr (Rows > 1) o1 = __riscv_vfmacc_vf_f32m2(o1, f[1], odd, vl);
  if constexpr (Rows > 2) o2 = __riscv_vfmacc_vf_f32m2(o2, f[2], odd, vl);
  if constexpr (Rows > 3) o3 = __riscv_vfmacc_vf_f32m2(o3, f[3], odd, vl);
  if constexpr (Rows > 4) o4 = __riscv_vfmacc_vf_f32m2(o4, f[4], odd, vl);
  if constexpr (Rows > 5) o5 = __riscv_vfmacc_vf_f32m2(o5, f[5], odd, vl);
}

// Adds `k` rows of the weight at `w`, times `a` ([k][Stride], of which the first Rows), to `sums`
// ([Rows][2][kLanes]), or to nothing where not `resume`. `Streams`: the weight comes from memory.
template <class Lanes, int Rows, int Stride = Rows, bool Streams = false>
inline void accumulate(const float* a, const uint32_t* w, int64_t k, float* sums, bool resume,
                       size_t vl) {
  const Mask all = all_lanes(vl);
  const Float zero = __riscv_vfmv_v_f_f32m2(0.0F, vl);
  Float e0 = zero, e1 = zero, e2 = zero, e3 = zero, e4 = zero, e5 = zero;
  Float o0 = zero, o1 = zero, o2 = zero, o3 = zero, o4 = zero, o5 = zero;
  if (resume) {
    load_sums(sums, 0, e0, o0, vl);
    if constexpr (Rows > 1) load_sums(sums, 1, e1, o1, vl);
    if constexpr (Rows > 2) load_sums(sums, 2, e2, o2, vl);
    if constexpr (Rows > 3) load_sums(sums, 3, e3, o3, vl);
    if constexpr (Rows > 4) load_sums(sums, 4, e4, o4, vl);
    if constexpr (Rows > 5) load_sums(sums, 5, e5, o5, vl);
  }
  if (k >= 2) {
    Bits next = load_bits(w, vl);
    Float even = Lanes::even(next, all, vl);
    Float odd = Lanes::odd(next, all, vl);
    next = load_bits(w + kLanes, vl);
    for (; k >= 4; k -= 2, a += 2 * Stride, w += 2 * kLanes) {
      if constexpr (Streams) prefetch_ahead(w);
      const Bits after = load_bits(w + 2 * kLanes, vl);
      const Float next_even = Lanes::even(next, all, vl);
      const Float next_odd = Lanes::odd(next, all, vl);
      multiply_add<Rows>(e0, e1, e2, e3, e4, e5, o0, o1, o2, o3, o4, o5, a, even, odd, vl);
      if constexpr (Streams) prefetch_ahead(w + kLanes);
      next = load_bits(w + 3 * kLanes, vl);
      even = Lanes::even(after, all, vl);
      odd = Lanes::odd(after, all, vl);
      multiply_add<Rows>(e0, e1, e2, e3, e4, e5, o0, o1, o2, o3, o4, o5, a + Stride, next_even,
                         next_odd, vl);
    }
    multiply_add<Rows>(e0, e1, e2, e3, e4, e5, o0, o1, o2, o3, o4, o5, a, even, odd, vl);
    multiply_add<Rows>(e0, e1, e2, e3, e4, e5, o0, o1, o2, o3, o4, o5, a + Stride,
                       Lanes::even(next, all, vl), Lanes::odd(next, all, vl), vl);
    k -= 2;
    a += 2 * Stride;
    w += 2 * kLanes;
  }
  if (k == 1) {
    const Bits row = load_bits(w, vl);
    multiply_add<Rows>(e0, e1, e2, e3, e4, e5, o0, o1, o2, o3, o4, o5, a, Lanes::even(row, all, vl),
                       Lanes::odd(row, all, vl), vl);
  }
  store_sums(sums, 0, e0, o0, vl);
  if constexpr (Rows > 1) store_sums(sums, 1, e1, o1, vl);
  if constexpr (Rows > 2) store_sums(sums, 2, e2, o2, vl);
  if constexpr (Rows > 3) store_sums(sums, 3, e3, o3, vl);
  if constexpr (Rows > 4) store_sums(sums, 4, e4, o4, vl);
  if constexpr (Rows > 5) store_sums(sums, 5, e5, o5, vl);
}

// Adds the bias to `rows` rows of sums of block `block`, rounds them, and stores them from row
// `first_row` of the output on.
template <class Lanes>
inline void finish(const PackedLinear& call, int64_t block, int64_t first_row, int64_t rows,
                   const float* sums, Chunk chunk) {
  const size_t vl = chunk.vl;
  const Mask all = all_lanes(vl);
  const int64_t first = block * kBlockColumns + 2 * chunk.lane;
  int64_t columns = call.n - first;
  if (columns > 2 * static_cast<int64_t>(vl)) columns = 2 * static_cast<int64_t>(vl);
  if (columns <= 0) return;
  uint16_t* out = call.out + first_row * call.out_stride + first;
  for (int64_t row = 0; row < rows; ++row, out += call.out_stride) {
    Float even, odd;
    load_sums(sums, row, even, odd, vl);
    if (call.bias != nullptr) {
      constexpr ptrdiff_t kStride = 2 * sizeof(float);
      even =
          __riscv_vfadd_vv_f32m2(even, __riscv_vlse32_v_f32m2(call.bias + first, kStride, vl), vl);
      odd = __riscv_vfadd_vv_f32m2(odd, __riscv_vlse32_v_f32m2(call.bias + first + 1, kStride, vl),
                                   vl);
    }
    // As 16-bit elements: an output row need not be 4-byte aligned, and N may be odd.
    const Bits both = Lanes::round(even, odd, all, vl);
    __riscv_vse16_v_u16m2(out, __riscv_vreinterpret_v_u32m2_u16m2(both),
                          static_cast<size_t>(columns));
  }
}

// Exactly `Rows` rows.
template <class Lanes, int Rows>
inline void linear(const PackedLinear& call, int64_t block_begin, int64_t block_end) {
  alignas(64) float sums[Rows * kRowSums];
  for (int64_t block = block_begin; block < block_end; ++block) {
    const uint32_t* w = block_rows(call, block);
    for (Chunk chunk = chunk_at(0); chunk.lane < kLanes; chunk = chunk_after(chunk)) {
      accumulate<Lanes, Rows, Rows, true>(static_cast<const float*>(call.left), w + chunk.lane,
                                          call.k, sums + chunk.lane, false, chunk.vl);
      finish<Lanes>(call, block, 0, Rows, sums + chunk.lane, chunk);
    }
  }
}

// accumulate(), by rows.
using Accumulate = void(const float* a, const uint32_t* w, int64_t k, float* sums, bool resume,
                        size_t vl);

// Any number of rows; `tiles` holds accumulate() for 1 to kTileRows rows.
template <class Lanes>
inline void blocked(const PackedLinear& call, int64_t block_begin, int64_t block_end,
                    Accumulate* const (&tiles)[kTileRows]) {
  alignas(64) float sums[kGroupRows * kRowSums];
  const auto* left = static_cast<const float*>(call.left);
  for (int64_t block = block_begin; block < block_end; ++block) {
    const uint32_t* w = block_rows(call, block);
    for (int64_t top = 0; top < call.m; top += kGroupRows) {
      const int64_t bottom = top + kGroupRows < call.m ? top + kGroupRows : call.m;
      for (Chunk chunk = chunk_at(0); chunk.lane < kLanes; chunk = chunk_after(chunk)) {
        for (int64_t begin = 0; begin < call.k; begin += kDepth) {
          const int64_t depth = begin + kDepth < call.k ? kDepth : call.k - begin;
          for (int64_t row = top; row < bottom; row += kTileRows) {
            const int64_t rows = row + kTileRows < bottom ? kTileRows : bottom - row;
            tiles[rows - 1](left + row * call.k + begin * rows, w + begin * kLanes + chunk.lane,
                            depth, sums + (row - top) * kRowSums + chunk.lane, begin > 0, chunk.vl);
          }
        }
        finish<Lanes>(call, block, top, bottom - top, sums + chunk.lane, chunk);
      }
    }
  }
}

}  // namespace sgl_rvv::npair
