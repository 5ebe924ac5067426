// BF16 packed linear, RVV 1.0.
//
// "N-pair": a packed row of 32 BF16 is read as 16 lanes of 32 bits. A lane's two halves are two
// neighbouring columns; shifting left by 16 makes the even column an FP32, masking with 0xffff0000
// the odd one. Nothing is widened or permuted, and the results are put together again lane by lane:
// (odd & 0xffff0000) | even >> 16.
//
// Three stages overlap: row k + 2 is loaded, row k + 1 converted (integer unit), row k multiplied
// (FP unit), while 2 * Rows accumulators stay in registers. Two techniques:
//   npair, 1 to 6 rows: one pass over the weight as it streams by.
//   npair_blocked, more rows: K in blocks of kDepth, short enough that a block's packed rows stay
//   in L1 while all tiles
//     of six rows use them; partial sums wait in a scratch. The weight comes from memory once for
//     each kGroupRows rows. (Converting the rows to FP32 first was tried and was slower in the
//     model: its loads cost more than the two integer operations that they replace, which overlap
//     with the FMAs.)
//
// Requires V; no Zvfh, no Zvfbfmin. Alignment: weight 4 bytes, out 2 bytes, left and bias 4 bytes.
// Groups are LMUL 2: 16 lanes need VLEN >= 256; at VLEN 128 a block is done in two halves of 8
// lanes, from the same bytes.
//
// Modelled on the SpacemiT X60 (VLEN 256, data in L1): see kernels/README.md.

#include <riscv_vector.h>

#include <algorithm>

#include "core/kernels_rvv.h"
#include "core/packed_layout.h"

namespace sgl_rvv {
namespace {

constexpr int64_t kLanes = kBlockColumns / 2;
constexpr uint32_t kHighHalf = 0xffff0000U;
constexpr int64_t kDepth = 192;                 // 12 KiB of packed rows
constexpr int64_t kGroupRows = 22 * kTileRows;  // partial sums of 132 rows: 16.5 KiB

using Float = vfloat32m2_t;
using Bits = vuint32m2_t;
using Mask = vbool16_t;

inline Bits load_bits(const uint32_t* row, size_t vl) {
  return __riscv_vle32_v_u32m2(row, vl);
}
inline Float load_float(const float* row, size_t vl) {
  return __riscv_vle32_v_f32m2(row, vl);
}

// A mask of ones that the compiler does not know to be one, so that it keeps the masked form of the
// integer instructions.
//
// Masks of ones cost nothing on hardware; they are here for emulation. For an unmasked integer
// instruction that fills its registers (vl = VLMAX) QEMU emits 256-bit AVX code and leaves the
// upper halves of the host's registers dirty, after which every SSE instruction of its
// floating-point helpers waits for them: the same kernel ran 10 to 15 times slower at VLEN 128 and
// 256 (QEMU 10.0 on an AMD EPYC host). Masked instructions go through helpers in C.
inline Mask all_lanes(size_t vl) {
  Mask all = __riscv_vmset_m_b16(vl);
  asm("" : "+vm"(all));
  return all;
}

inline Float even_columns(Bits row, Mask all, size_t vl) {
  return __riscv_vreinterpret_v_u32m2_f32m2(__riscv_vsll_vx_u32m2_m(all, row, 16, vl));
}

inline Float odd_columns(Bits row, Mask all, size_t vl) {
  return __riscv_vreinterpret_v_u32m2_f32m2(__riscv_vand_vx_u32m2_m(all, row, kHighHalf, vl));
}

// FP32 to BF16 in the high half of each lane, to nearest even; the low half is left over. `value`
// comes from an FMA or an addition, so a NaN is the canonical one (0x7fc00000), the only one that
// RISC-V arithmetic makes: the increment does not reach its exponent, and it stays the canonical
// NaN of BF16.
inline Bits round_to_high_half(Float value, Mask all, size_t vl) {
  const Bits bits = __riscv_vreinterpret_v_f32m2_u32m2(value);
  const Bits kept = __riscv_vsrl_vx_u32m2_m(all, bits, 16, vl);
  const Bits lowest_kept = __riscv_vand_vx_u32m2_m(all, kept, 1, vl);
  const Bits increment = __riscv_vadd_vx_u32m2_m(all, lowest_kept, 0x7fff, vl);
  return __riscv_vadd_vv_u32m2_m(all, bits, increment, vl);
}

// Where one chunk of a tile's result goes: `columns` BF16 at `out` in each row, after adding the
// bias (even columns at bias[0..], odd at bias[kLanes..]; or null).
struct Destination {
  uint16_t* out;
  int64_t stride;
  int64_t columns;
  const float* bias;
};

inline void store_row(const Destination& to, int64_t row, Float even, Float odd, Mask all,
                      size_t vl) {
  if (to.bias != nullptr) {
    even = __riscv_vfadd_vv_f32m2(even, load_float(to.bias, vl), vl);
    odd = __riscv_vfadd_vv_f32m2(odd, load_float(to.bias + kLanes, vl), vl);
  }
  const Bits low = __riscv_vsrl_vx_u32m2_m(all, round_to_high_half(even, all, vl), 16, vl);
  const Bits high = __riscv_vand_vx_u32m2_m(all, round_to_high_half(odd, all, vl), kHighHalf, vl);
  const Bits both = __riscv_vor_vv_u32m2_m(all, low, high, vl);
  // As 16-bit elements: an output row need not be 4-byte aligned, and N may be odd.
  __riscv_vse16_v_u16m2(to.out + row * to.stride, __riscv_vreinterpret_v_u32m2_u16m2(both),
                        static_cast<size_t>(to.columns));
}

inline void store_partial(float* sums, int64_t row, Float even, Float odd, size_t vl) {
  __riscv_vse32_v_f32m2(sums + row * kBlockColumns, even, vl);
  __riscv_vse32_v_f32m2(sums + row * kBlockColumns + kLanes, odd, vl);
}

// Adds one k: `f` holds the Rows values of the left operand. Vector registers cannot be members or
// array elements, hence the long list.
template <int Rows>
inline __attribute__((always_inline)) void multiply_add(Float& e0, Float& e1, Float& e2, Float& e3,
                                                        Float& e4, Float& e5, Float& o0, Float& o1,
                                                        Float& o2, Float& o3, Float& o4, Float& o5,
                                                        const float* f, Float even, Float odd,
                                                        size_t vl) {
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

// The chunk of a block's columns that one pass over K computes: lanes [lane, lane + vl) are columns
// [2 * lane, 2 * (lane + vl)) of the block.
struct Chunk {
  int64_t lane;
  size_t vl;
};

inline Chunk chunk_at(int64_t lane) {
  return {lane, __riscv_vsetvl_e32m2(static_cast<size_t>(kLanes - lane))};
}

inline Destination destination(const PackedLinear& call, int64_t block, int64_t first_row,
                               Chunk chunk) {
  const int64_t first = block * kBlockColumns + 2 * chunk.lane;
  return {call.out + first_row * call.out_stride + first, call.out_stride,
          std::clamp<int64_t>(call.n - first, 0, 2 * static_cast<int64_t>(chunk.vl)),
          call.bias == nullptr ? nullptr : call.bias + block * kBlockColumns + chunk.lane};
}

inline Chunk chunk_after(Chunk chunk) {
  return chunk_at(chunk.lane + static_cast<int64_t>(chunk.vl));
}

inline const uint32_t* block_rows(const PackedLinear& call, int64_t block) {
  return reinterpret_cast<const uint32_t*>(call.weight + packed_block_offset(block, call.k));
}

// A tile may do a part of K: it then resumes from, or is suspended into, partial sums
// ([rows][2][16] FP32).
struct Accumulation {
  float* sums;
  bool resume;
  bool suspend;
};
constexpr Accumulation kWhole = {nullptr, false, false};

template <int Rows>
inline void npair_tile(const float* a, const uint32_t* w, int64_t k, const Accumulation& state,
                       const Destination& to, size_t vl) {
  const Mask all = all_lanes(vl);
  const Float zero = __riscv_vfmv_v_f_f32m2(0.0F, vl);
  Float e0 = zero, e1 = zero, e2 = zero, e3 = zero, e4 = zero, e5 = zero;
  Float o0 = zero, o1 = zero, o2 = zero, o3 = zero, o4 = zero, o5 = zero;
  if (state.resume) {
    e0 = load_float(state.sums, vl);
    o0 = load_float(state.sums + kLanes, vl);
    if constexpr (Rows > 1) e1 = load_float(state.sums + kBlockColumns, vl);
    if constexpr (Rows > 1) o1 = load_float(state.sums + kBlockColumns + kLanes, vl);
    if constexpr (Rows > 2) e2 = load_float(state.sums + 2 * kBlockColumns, vl);
    if constexpr (Rows > 2) o2 = load_float(state.sums + 2 * kBlockColumns + kLanes, vl);
    if constexpr (Rows > 3) e3 = load_float(state.sums + 3 * kBlockColumns, vl);
    if constexpr (Rows > 3) o3 = load_float(state.sums + 3 * kBlockColumns + kLanes, vl);
    if constexpr (Rows > 4) e4 = load_float(state.sums + 4 * kBlockColumns, vl);
    if constexpr (Rows > 4) o4 = load_float(state.sums + 4 * kBlockColumns + kLanes, vl);
    if constexpr (Rows > 5) e5 = load_float(state.sums + 5 * kBlockColumns, vl);
    if constexpr (Rows > 5) o5 = load_float(state.sums + 5 * kBlockColumns + kLanes, vl);
  }
  if (k >= 2) {
    Bits next = load_bits(w, vl);
    Float even = even_columns(next, all, vl);
    Float odd = odd_columns(next, all, vl);
    next = load_bits(w + kLanes, vl);
    for (; k >= 4; k -= 2, a += 2 * Rows, w += 2 * kLanes) {
      const Bits after = load_bits(w + 2 * kLanes, vl);
      const Float next_even = even_columns(next, all, vl);
      const Float next_odd = odd_columns(next, all, vl);
      multiply_add<Rows>(e0, e1, e2, e3, e4, e5, o0, o1, o2, o3, o4, o5, a, even, odd, vl);
      next = load_bits(w + 3 * kLanes, vl);
      even = even_columns(after, all, vl);
      odd = odd_columns(after, all, vl);
      multiply_add<Rows>(e0, e1, e2, e3, e4, e5, o0, o1, o2, o3, o4, o5, a + Rows, next_even,
                         next_odd, vl);
    }
    multiply_add<Rows>(e0, e1, e2, e3, e4, e5, o0, o1, o2, o3, o4, o5, a, even, odd, vl);
    multiply_add<Rows>(e0, e1, e2, e3, e4, e5, o0, o1, o2, o3, o4, o5, a + Rows,
                       even_columns(next, all, vl), odd_columns(next, all, vl), vl);
    k -= 2;
    a += 2 * Rows;
    w += 2 * kLanes;
  }
  if (k == 1) {
    const Bits row = load_bits(w, vl);
    multiply_add<Rows>(e0, e1, e2, e3, e4, e5, o0, o1, o2, o3, o4, o5, a,
                       even_columns(row, all, vl), odd_columns(row, all, vl), vl);
  }
  if (state.suspend) {
    store_partial(state.sums, 0, e0, o0, vl);
    if constexpr (Rows > 1) store_partial(state.sums, 1, e1, o1, vl);
    if constexpr (Rows > 2) store_partial(state.sums, 2, e2, o2, vl);
    if constexpr (Rows > 3) store_partial(state.sums, 3, e3, o3, vl);
    if constexpr (Rows > 4) store_partial(state.sums, 4, e4, o4, vl);
    if constexpr (Rows > 5) store_partial(state.sums, 5, e5, o5, vl);
    return;
  }
  store_row(to, 0, e0, o0, all, vl);
  if constexpr (Rows > 1) store_row(to, 1, e1, o1, all, vl);
  if constexpr (Rows > 2) store_row(to, 2, e2, o2, all, vl);
  if constexpr (Rows > 3) store_row(to, 3, e3, o3, all, vl);
  if constexpr (Rows > 4) store_row(to, 4, e4, o4, all, vl);
  if constexpr (Rows > 5) store_row(to, 5, e5, o5, all, vl);
}

using Tile = void(const float*, const uint32_t*, int64_t, const Accumulation&, const Destination&,
                  size_t);
constexpr Tile* kTiles[kTileRows] = {npair_tile<1>, npair_tile<2>, npair_tile<3>,
                                     npair_tile<4>, npair_tile<5>, npair_tile<6>};

}  // namespace

template <int Rows>
void packed_linear_bf16_npair_rvv(const PackedLinear& call, int64_t block_begin,
                                  int64_t block_end) {
  for (int64_t block = block_begin; block < block_end; ++block) {
    const uint32_t* w = block_rows(call, block);
    for (Chunk chunk = chunk_at(0); chunk.lane < kLanes; chunk = chunk_after(chunk)) {
      npair_tile<Rows>(call.left, w + chunk.lane, call.k, kWhole,
                       destination(call, block, 0, chunk), chunk.vl);
    }
  }
}

template PackedLinearKernel packed_linear_bf16_npair_rvv<1>;
template PackedLinearKernel packed_linear_bf16_npair_rvv<2>;
template PackedLinearKernel packed_linear_bf16_npair_rvv<3>;
template PackedLinearKernel packed_linear_bf16_npair_rvv<4>;
template PackedLinearKernel packed_linear_bf16_npair_rvv<5>;
template PackedLinearKernel packed_linear_bf16_npair_rvv<6>;

void packed_linear_bf16_npair_blocked_rvv(const PackedLinear& call, int64_t block_begin,
                                          int64_t block_end) {
  alignas(64) float sums[kGroupRows * kBlockColumns];
  for (int64_t block = block_begin; block < block_end; ++block) {
    const uint32_t* w = block_rows(call, block);
    for (int64_t top = 0; top < call.m; top += kGroupRows) {
      const int64_t bottom = std::min(top + kGroupRows, call.m);
      for (int64_t begin = 0; begin < call.k; begin += kDepth) {
        const int64_t depth = std::min(kDepth, call.k - begin);
        for (Chunk chunk = chunk_at(0); chunk.lane < kLanes; chunk = chunk_after(chunk)) {
          for (int64_t row = top; row < bottom; row += kTileRows) {
            const int64_t rows = std::min(kTileRows, bottom - row);
            const Accumulation state = {sums + (row - top) * kBlockColumns + chunk.lane, begin > 0,
                                        begin + depth < call.k};
            kTiles[rows - 1](call.left + row * call.k + begin * rows,
                             w + begin * kLanes + chunk.lane, depth, state,
                             destination(call, block, row, chunk), chunk.vl);
          }
        }
      }
    }
  }
}

}  // namespace sgl_rvv
