// W8A8 linear, RVV 1.0: the "grouped" technique.
//
// 32 columns of the weight are one group of 8-bit lanes. Products go to 16-bit lanes, in which as
// many k are added up as cannot overflow (int8_linear.h: 4, seldom 2, all but never 1), and only
// then to the int32 sums: widening costs as much as two multiplications. int8_runs_rvv.h has the
// loops.
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
#include "core/int8_runs_rvv.h"
#include "core/kernels_rvv.h"
#include "core/nearest_rounding.h"
#include "core/packed_layout.h"

namespace sgl_rvv {
namespace {

#define SGL_RVV_INLINE inline __attribute__((always_inline))

using Sums = vint32m4_t;

constexpr int64_t kGroupRows = 128;  // sums of 128 rows: 16 KiB
constexpr size_t kWideBytes = 32;    // VLEN 256: two k of a block fill two registers

constexpr int64_t kRow = kInt8PanelDepth;  // from one row of a tile to the next

// One k, by itself in 16 bits.
template <int Rows>
SGL_RVV_INLINE void add_one(Sums& c0, Sums& c1, Sums& c2, Sums& c3, Sums& c4, Sums& c5,
                            const int8_t* a, const int8_t* w, size_t vl) {
  const vint8m1_t row = __riscv_vle8_v_i8m1(w, vl);
  const auto product = [&](int64_t of) { return __riscv_vwmul_vx_i16m2(row, a[of * kRow], vl); };
  c0 = __riscv_vwadd_wv_i32m4(c0, product(0), vl);
  if constexpr (Rows > 1) c1 = __riscv_vwadd_wv_i32m4(c1, product(1), vl);
  if constexpr (Rows > 2) c2 = __riscv_vwadd_wv_i32m4(c2, product(2), vl);
  if constexpr (Rows > 3) c3 = __riscv_vwadd_wv_i32m4(c3, product(3), vl);
  if constexpr (Rows > 4) c4 = __riscv_vwadd_wv_i32m4(c4, product(4), vl);
  if constexpr (Rows > 5) c5 = __riscv_vwadd_wv_i32m4(c5, product(5), vl);
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
  for (; k > 0; k -= kInt8PanelDepth) {
    const int64_t depth = k < kInt8PanelDepth ? k : kInt8PanelDepth;
    const int8_t* left = a;
    const auto singles = [&](int64_t count) {
      for (; count > 0; --count, ++left, w += kBlockColumns) {
        add_one<Rows>(c0, c1, c2, c3, c4, c5, left, w, vl);
      }
    };
    const Int8Run* run = runs;
    for (int64_t quads = depth / kQuad; quads > 0; quads -= run->quads, ++run) {
      if (run->group == 1) {
        singles(run->quads * kQuad);
        continue;
      }
      if (run->group == 4) {
        add_quads<Rows, 4, Wide>(c0, c1, c2, c3, c4, c5, left, w, run->quads, vl);
      } else {
        add_quads<Rows, 2, Wide>(c0, c1, c2, c3, c4, c5, left, w, run->quads, vl);
      }
      left += run->quads * kQuad;
      w += run->quads * kQuad * kBlockColumns;
    }
    singles(depth % kQuad);
    a += Rows * kRow;
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
