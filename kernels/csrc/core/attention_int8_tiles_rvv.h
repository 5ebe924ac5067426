// Tiles of an INT8 cache (attention_blocks.h) with RVV 1.0, any VLEN from 128 up. Only for files
// that are compiled with V.
//
// Decoding, codes become FP32 and scales are applied to scores and weights, one multiplication for
// each token and query instead of one for each element. Keys are transposed on the way: one gather
// reads four neighbouring codes of each token as a 32-bit lane. A code is moved to the top of its
// lane, whose conversion is then 2^24 times the code, exactly; the query has been divided by that.
// Values are widened to 32 bits, put into the fraction of 1.5 * 2^23 by an addition, and this is
// subtracted again: a conversion instruction takes the floating-point unit twice as long as that
// subtraction. All of it is done in 32-bit lanes, as each change of the vector type makes an
// in-order core wait for what it has begun.
//
// Requires 4-byte alignment of a key row's start; rows that are not aligned so are copied first.
#pragma once

#include <riscv_vector.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/attention_tiles_rvv.h"
#include "core/ordered_rvv.h"

namespace sgl_rvv {
namespace {

// An integer as an argument of a generic lambda.
template <int Value>
constexpr std::integral_constant<int, Value> kInt{};

// 1.5 * 2^23: adding a small integer to its pattern adds it to the number.
constexpr float kIntegerShift = 0x1.8p23F;
constexpr int32_t kIntegerShiftBits = 0x4b400000;

// Byte offsets of tokens [0, vl): slots times a stride in bytes.
inline vuint64m8_t slot_offsets8(const int64_t* slots, int64_t stride, size_t vl) {
  const vuint64m8_t index =
      slots == nullptr ? __riscv_vid_v_u64m8(vl)
                       : __riscv_vle64_v_u64m8(reinterpret_cast<const uint64_t*>(slots), vl);
  return __riscv_vmul_vx_u64m8(index, static_cast<uint64_t>(stride), vl);
}

inline vuint64m4_t slot_offsets4(const int64_t* slots, int64_t stride, size_t vl) {
  const vuint64m4_t index =
      slots == nullptr ? __riscv_vid_v_u64m4(vl)
                       : __riscv_vle64_v_u64m4(reinterpret_cast<const uint64_t*>(slots), vl);
  return __riscv_vmul_vx_u64m4(index, static_cast<uint64_t>(stride), vl);
}

// The scales of tokens [0, vl).
inline vfloat32m4_t scales4(const Int8Rows& rows, size_t vl) {
  if (rows.scales == nullptr) return __riscv_vfmv_v_f_f32m4(rows.scale, vl);
  const int64_t stride = rows.scale_stride * static_cast<int64_t>(sizeof(float));
  return __riscv_vluxei64_v_f32m4(rows.scales, slot_offsets8(rows.codes.slots, stride, vl), vl);
}

inline vfloat32m2_t scales2(const Int8Rows& rows, size_t vl) {
  if (rows.scales == nullptr) return __riscv_vfmv_v_f_f32m2(rows.scale, vl);
  const int64_t stride = rows.scale_stride * static_cast<int64_t>(sizeof(float));
  return __riscv_vluxei64_v_f32m2(rows.scales, slot_offsets4(rows.codes.slots, stride, vl), vl);
}

// Whether every row begins at a multiple of 4 bytes.
inline bool aligned(const KvRowsOf<int8_t>& rows) {
  constexpr uintptr_t kBytes = sizeof(uint32_t);
  return reinterpret_cast<uintptr_t>(rows.data) % kBytes == 0 &&
         static_cast<uintptr_t>(rows.slot_stride) % kBytes == 0;
}

// `count` rows, aligned: as they are, or copied to `staging`.
inline KvRowsOf<int8_t> staged(const KvRowsOf<int8_t>& rows, int64_t count, int64_t head,
                               uint16_t* staging) {
  if (aligned(rows)) return rows;
  auto* copies = reinterpret_cast<int8_t*>(staging);
  for (int64_t token = 0; token < count; ++token) {
    const int8_t* from = rows.row(token);
    int8_t* to = copies + token * head;
    for (int64_t left = head; left > 0;) {
      const size_t vl = __riscv_vsetvl_e8m4(static_cast<size_t>(left));
      __riscv_vse8_v_i8m4(to, __riscv_vle8_v_i8m4(from, vl), vl);
      from += vl;
      to += vl;
      left -= static_cast<int64_t>(vl);
    }
  }
  return {copies, head, nullptr};
}

// Where codes are in a 32-bit lane: code i must be moved to the top, and what is below it removed.
constexpr uint32_t kTopCode = 0xff000000U;

// One step of a tile of scores: multiplies by one code and loads the next numbers of the queries,
// which begin `Next` behind `query`. Meanwhile moves code `Code` of `lanes` to the top of `moved`,
// which start_code() has begun.
template <int Rows, int Next, int Code>
inline __attribute__((always_inline)) void score_step(
    vfloat32m2_t& c0, vfloat32m2_t& c1, vfloat32m2_t& c2, vfloat32m2_t& c3, vfloat32m2_t& c4,
    vfloat32m2_t& c5, float& f0, float& f1, float& f2, float& f3, float& f4, float& f5,
    const vfloat32m2_t& right, const float* query, vfloat32m2_t& moved, vbool16_t all) {
  ordered::multiply_add(c0, f0, right);
  if constexpr (Code == 1 || Code == 2) ordered::keep(moved, moved, kTopCode, all);
  ordered::load<Next>(f0, query);
  if constexpr (Rows > 1) {
    ordered::multiply_add(c1, f1, right);
    ordered::load<Next + 1>(f1, query);
  }
  if constexpr (Rows > 2) {
    ordered::multiply_add(c2, f2, right);
    ordered::load<Next + 2>(f2, query);
  }
  if constexpr (Rows > 3) {
    ordered::multiply_add(c3, f3, right);
    ordered::load<Next + 3>(f3, query);
  }
  if constexpr (Rows > 4) {
    ordered::multiply_add(c4, f4, right);
    ordered::load<Next + 4>(f4, query);
  }
  if constexpr (Rows > 5) {
    ordered::multiply_add(c5, f5, right);
    ordered::load<Next + 5>(f5, query);
  }
}

template <int Code>
inline __attribute__((always_inline)) void start_code(vfloat32m2_t& moved,
                                                      const vfloat32m2_t& lanes, vbool16_t all) {
  if constexpr (Code < 3) ordered::shift_left<24 - 8 * Code>(moved, lanes, all);
  if constexpr (Code == 3) ordered::keep(moved, lanes, kTopCode, all);
}

// Scores of up to six queries with the keys whose codes are at `base` + `offsets` bytes: c [Rows,
// vl] = scales times (query [head, Rows], transposed, times 2^24 codes). While one code is
// multiplied by, the next is being converted, and the one behind that moved to the top of its lane.
template <int Rows>
inline void int8_score_tile(const float* query, int64_t head, const int8_t* base,
                            vuint64m4_t offsets, vfloat32m2_t scales, float* c, int64_t ldc,
                            size_t vl) {
  using G = Group2;
  using Float = G::Float;
  const vbool16_t all = all_lanes(vl);
  Float c0, c1, c2, c3, c4, c5, lanes, ahead, moved, even, odd;
  float f0 = query[0], f1 = 0.0F, f2 = 0.0F, f3 = 0.0F, f4 = 0.0F, f5 = 0.0F;
  if constexpr (Rows > 1) f1 = query[1];
  if constexpr (Rows > 2) f2 = query[2];
  if constexpr (Rows > 3) f3 = query[3];
  if constexpr (Rows > 4) f4 = query[4];
  if constexpr (Rows > 5) f5 = query[5];
  ordered::begin2(vl);
  ordered::gather(lanes, base, offsets);
  ordered::zero(c0);
  if constexpr (Rows > 1) ordered::zero(c1);
  if constexpr (Rows > 2) ordered::zero(c2);
  if constexpr (Rows > 3) ordered::zero(c3);
  if constexpr (Rows > 4) ordered::zero(c4);
  if constexpr (Rows > 5) ordered::zero(c5);
  ordered::shift_left<24>(moved, lanes, all);
  ordered::convert(even, moved);
  ordered::shift_left<16>(moved, lanes, all);
  ordered::keep(moved, moved, kTopCode, all);
  ordered::advance<4>(base);
  // Converts what was moved, then begins to move code `code` of `from`.
  const auto convert = [&](Float& to, auto code, const Float& from) __attribute__((always_inline)) {
    ordered::convert(to, moved);
    start_code<decltype(code)::value>(moved, from, all);
  };
  const auto step = [&](auto next, auto code, const Float& right) __attribute__((always_inline)) {
    score_step<Rows, decltype(next)::value, decltype(code)::value>(
        c0, c1, c2, c3, c4, c5, f0, f1, f2, f3, f4, f5, right, query, moved, all);
  };
  // Eight codes, of which one is converted and one at the top; `more`: eight more come behind them.
  const auto eight = [&](auto more) __attribute__((always_inline)) {
    step(kInt<Rows>, kInt<2>, even);
    convert(even, kInt<3>, lanes);
    ordered::gather(ahead, base, offsets);
    step(kInt<2 * Rows>, kInt<3>, odd);
    convert(odd, kInt<0>, ahead);
    ordered::advance<4>(base);
    step(kInt<3 * Rows>, kInt<0>, even);
    convert(even, kInt<1>, ahead);
    if constexpr (decltype(more)::value) ordered::gather(lanes, base, offsets);
    step(kInt<4 * Rows>, kInt<1>, odd);
    convert(odd, kInt<2>, ahead);
    ordered::advance<4>(base);
    step(kInt<5 * Rows>, kInt<2>, even);
    convert(even, kInt<3>, ahead);
    ordered::advance<8 * Rows * 4>(query);
    step(kInt<-2 * Rows>, kInt<3>, odd);
    convert(odd, kInt<0>, lanes);
    step(kInt<-Rows>, kInt<0>, even);
    convert(even, kInt<1>, lanes);
    step(kInt<0>, kInt<1>, odd);
    convert(odd, kInt<2>, lanes);
  };
  convert(odd, kInt<2>, lanes);
  const int8_t* const last = base + head - 8;
  while (base < last) eight(std::true_type());
  eight(std::false_type());
  ordered::end();
  const auto put = [&](int64_t row, const Float& sum) __attribute__((always_inline)) {
    G::store(c + row * ldc, __riscv_vfmul_vv_f32m2(sum, scales, vl), vl);
  };
  put(0, c0);
  if constexpr (Rows > 1) put(1, c1);
  if constexpr (Rows > 2) put(2, c2);
  if constexpr (Rows > 3) put(3, c3);
  if constexpr (Rows > 4) put(4, c4);
  if constexpr (Rows > 5) put(5, c5);
}

using Int8ScoreTile = void(const float* query, int64_t head, const int8_t* base,
                           vuint64m4_t offsets, vfloat32m2_t scales, float* c, int64_t ldc,
                           size_t vl);

constexpr Int8ScoreTile* kInt8ScoreTiles[kQueryTile] = {int8_score_tile<1>, int8_score_tile<2>,
                                                        int8_score_tile<3>, int8_score_tile<4>,
                                                        int8_score_tile<5>, int8_score_tile<6>};

// The codes of a row as FP32.
inline __attribute__((always_inline)) vint32m4_t wide_codes(const void* row, int64_t column,
                                                            size_t vl) {
  const vint8m1_t codes = __riscv_vle8_v_i8m1(static_cast<const int8_t*>(row) + column, vl);
  return __riscv_vsext_vf4_i32m4(codes, vl);
}

inline __attribute__((always_inline)) vfloat32m4_t number_of(vint32m4_t code, vbool8_t all,
                                                             size_t vl) {
  const vint32m4_t shifted = __riscv_vadd_vx_i32m4_m(all, code, kIntegerShiftBits, vl);
  return __riscv_vfsub_vf_f32m4(__riscv_vreinterpret_v_i32m4_f32m4(shifted), kIntegerShift, vl);
}

// How a row of codes becomes FP32: by the conversion instruction, which takes the floating-point
// unit twice as long as a subtraction, or by an addition in the integer unit and that subtraction.
// With `Rows` rows of weights, the first where the floating-point unit has the time, and for two
// rows in turns, so that both units are busy; `Buffer` is one of three that rows go through.
template <int Rows, int Buffer>
constexpr bool kConverts = Rows == 1 || (Rows == 2 && Buffer < 2);

template <int Rows, int Buffer>
inline __attribute__((always_inline)) void prepare_row(vfloat32m4_t& integers, vbool8_t all) {
  if constexpr (!kConverts<Rows, Buffer>) ordered::add_to(integers, kIntegerShiftBits, all);
}

template <int Rows, int Buffer>
inline __attribute__((always_inline)) void convert_row(vfloat32m4_t& prepared) {
  if constexpr (kConverts<Rows, Buffer>) {
    ordered::convert(prepared);
  } else {
    ordered::subtract(prepared, kIntegerShift);
  }
}

// Loads the bytes at `row`, then the address of a later one.
template <int Next>
inline __attribute__((always_inline)) void load_row(vint8m1_t& bytes, const void*& row,
                                                    const void* const* rows) {
  ordered::load_bytes(bytes, row);
  ordered::load<Next>(row, rows);
}

// One step of a tile of rows: multiplies by row t (`now`) and loads the weights of the next, which
// are `Next` behind `a0` to `a3`. Meanwhile row t + 1 (`soon`, integers) becomes FP32, row t + 2
// (`bytes`) integers in `later`, and row t + 3, at `row`, is loaded; then `row` is that of t + 4.
template <int Rows, int Next, int Soon, int Later>
inline __attribute__((always_inline)) void rows_step(
    vfloat32m4_t& c0, vfloat32m4_t& c1, vfloat32m4_t& c2, vfloat32m4_t& c3, float& f0, float& f1,
    float& f2, float& f3, const vfloat32m4_t& now, vfloat32m4_t& soon, vfloat32m4_t& later,
    vint8m1_t& bytes, const float* a0, const float* a1, const float* a2, const float* a3,
    const void*& row, const void* const* rows, int64_t column, vbool8_t all) {
  convert_row<Rows, Soon>(soon);
  ordered::sign_extend(later, bytes);
  // Behind a conversion there is time before the first multiply-add, else only after it.
  if constexpr (kConverts<Rows, Soon>) load_row<Next + 3>(bytes, row, rows);
  ordered::multiply_add(c0, f0, now);
  if constexpr (Rows == 2) prepare_row<Rows, Later>(later, all);
  if constexpr (!kConverts<Rows, Soon>) load_row<Next + 3>(bytes, row, rows);
  if constexpr (Rows > 2) ordered::load<Next>(f0, a0);
  if constexpr (Rows > 1) ordered::multiply_add(c1, f1, now);
  if constexpr (Rows < 3) ordered::load<Next>(f0, a0);
  if constexpr (Rows > 1) ordered::load<Next>(f1, a1);
  if constexpr (Rows > 2) prepare_row<Rows, Later>(later, all);
  if constexpr (Rows > 2) {
    ordered::multiply_add(c2, f2, now);
    ordered::load<Next>(f2, a2);
  }
  if constexpr (Rows > 3) {
    ordered::multiply_add(c3, f3, now);
    ordered::load<Next>(f3, a3);
  }
  ordered::advance_by(row, column);
}

// rows_tile() of attention_tiles_rvv.h for rows of codes; kRowsAhead repeat the last one.
template <int Rows>
inline void int8_rows_tile(const Product& p, const void* const* rows, int64_t column, size_t vl) {
  using G = Group4;
  using Float = G::Float;
  const vbool8_t all = all_lanes4(vl);
  Float c0 = begin_row<G>(p, 0, vl), c1, c2, c3, x0, x1, x2;
  if constexpr (Rows > 1) c1 = begin_row<G>(p, 1, vl);
  if constexpr (Rows > 2) c2 = begin_row<G>(p, 2, vl);
  if constexpr (Rows > 3) c3 = begin_row<G>(p, 3, vl);
  const float* a0 = p.a;
  const float* a1 = Rows > 1 ? a0 + p.lda : a0;
  const float* a2 = Rows > 2 ? a1 + p.lda : a0;
  const float* a3 = Rows > 3 ? a2 + p.lda : a0;
  float f0 = *a0, f1 = *a1, f2 = *a2, f3 = *a3;
  const auto at = [&](int64_t token) { return static_cast<const int8_t*>(rows[token]) + column; };
  vint8m1_t bytes = __riscv_vle8_v_i8m1(at(0), vl);
  const void* row = at(1);
  ordered::begin4(vl);
  // The row that is `now` in buffer (Next + 2) % 3, the next one behind it, and so on.
  const auto step = [&](auto next, const Float& now, Float& soon,
                        Float& later) __attribute__((always_inline)) {
    constexpr int kNext = decltype(next)::value;
    rows_step<Rows, kNext, kNext, (kNext + 1) % 3>(c0, c1, c2, c3, f0, f1, f2, f3, now, soon, later,
                                                   bytes, a0, a1, a2, a3, row, rows, column, all);
  };
  ordered::sign_extend(x0, bytes);
  ordered::load_bytes(bytes, row);
  prepare_row<Rows, 0>(x0, all);
  row = at(2);
  ordered::sign_extend(x1, bytes);
  ordered::load_bytes(bytes, row);
  convert_row<Rows, 0>(x0);
  prepare_row<Rows, 1>(x1, all);
  row = at(3);
  int64_t k = p.k;
  for (; k > 3; k -= 3) {
    step(kInt<1>, x0, x1, x2);
    step(kInt<2>, x1, x2, x0);
    ordered::advance<3 * sizeof(float)>(a0);
    if constexpr (Rows > 1) ordered::advance<3 * sizeof(float)>(a1);
    if constexpr (Rows > 2) ordered::advance<3 * sizeof(float)>(a2);
    if constexpr (Rows > 3) ordered::advance<3 * sizeof(float)>(a3);
    ordered::advance<3 * sizeof(void*)>(rows);
    step(kInt<0>, x2, x0, x1);
  }
  // One to three are left: the last has no next one.
  const auto last = [&](const Float& now) __attribute__((always_inline)) {
    ordered::multiply_add(c0, f0, now);
    if constexpr (Rows > 1) ordered::multiply_add(c1, f1, now);
    if constexpr (Rows > 2) ordered::multiply_add(c2, f2, now);
    if constexpr (Rows > 3) ordered::multiply_add(c3, f3, now);
  };
  if (k == 1) {
    last(x0);
  } else {
    step(kInt<1>, x0, x1, x2);
    if (k == 2) {
      last(x1);
    } else {
      step(kInt<2>, x1, x2, x0);
      last(x2);
    }
  }
  ordered::end();
  G::store(p.c, c0, vl);
  if constexpr (Rows > 1) G::store(p.c + p.ldc, c1, vl);
  if constexpr (Rows > 2) G::store(p.c + 2 * p.ldc, c2, vl);
  if constexpr (Rows > 3) G::store(p.c + 3 * p.ldc, c3, vl);
}

constexpr RowsTile* kInt8RowsTiles[kRowsTile] = {int8_rows_tile<1>, int8_rows_tile<2>,
                                                 int8_rows_tile<3>, int8_rows_tile<4>};

template <class Element>
struct RvvInt8Tiles : RvvTiles<Element> {
  using Base = RvvTiles<Element>;
  using Base::columns;

  // Divided by 2^24, which scores() multiplies codes by.
  static void query_column(const uint16_t* row, int64_t head, float scale, int64_t pitch,
                           float* out) {
    Base::query_column(row, head, scale * 0x1p-24F, pitch, out);
  }

  static void scores(const float* query, int64_t m, int64_t head, const Int8Rows& from,
                     int64_t count, uint16_t* staging, float* c, int64_t ldc) {
    const KvRowsOf<int8_t> rows = staged(from.codes, count, head, staging);
    const auto strip = static_cast<int64_t>(Group2::most());
    for (int64_t i = 0; i < count; i += strip) {
      const KvRowsOf<int8_t> here = rows.from(i);
      const auto vl = static_cast<size_t>(std::min(strip, count - i));
      kInt8ScoreTiles[m - 1](query, head, here.data,
                             slot_offsets4(here.slots, here.slot_stride, vl),
                             scales2(from.from(i), vl), c + i, ldc, vl);
    }
  }

  static void keys(const Int8Rows& from, int64_t count, int64_t head, uint16_t* staging,
                   float* out) {
    const KvRowsOf<int8_t> rows = staged(from.codes, count, head, staging);
    const auto vl = static_cast<size_t>(count);
    const vbool8_t all = all_lanes4(vl);
    const vfloat32m4_t scales = scales4(from, vl);
    const vuint64m8_t offsets = slot_offsets8(rows.slots, rows.slot_stride, vl);
    const int64_t pitch = columns();
    const auto gather = [&](int64_t i) {
      return __riscv_vluxei64_v_i32m4(reinterpret_cast<const int32_t*>(rows.data + i), offsets, vl);
    };
    const auto put = [&](vint32m4_t top, float* to) __attribute__((always_inline)) {
      const vfloat32m4_t key =
          __riscv_vfcvt_f_x_v_f32m4(__riscv_vsra_vx_i32m4_m(all, top, 24, vl), vl);
      __riscv_vse32_v_f32m4(to, __riscv_vfmul_vv_f32m4(key, scales, vl), vl);
    };
    vint32m4_t four = gather(0);
    for (int64_t i = 0; i < head; i += 4, out += 4 * pitch) {
      const vint32m4_t now = four;
      four = gather(std::min(i + 4, head - 4));  // ahead; the last once more
      put(__riscv_vsll_vx_i32m4_m(all, now, 24, vl), out);
      put(__riscv_vsll_vx_i32m4_m(all, now, 16, vl), out + pitch);
      put(__riscv_vsll_vx_i32m4_m(all, now, 8, vl), out + 2 * pitch);
      put(now, out + 3 * pitch);
    }
  }

  static bool values(const Int8Rows& rows, int64_t count, int64_t head_v, float* out) {
    for (int64_t i = 0; i < head_v;) {
      const size_t vl = __riscv_vsetvl_e32m4(static_cast<size_t>(head_v - i));
      const vbool8_t all = all_lanes4(vl);
      float* to = out + i;
      for (int64_t token = 0; token < count; ++token, to += head_v) {
        const vfloat32m4_t wide = number_of(wide_codes(rows.codes.row(token), i, vl), all, vl);
        __riscv_vse32_v_f32m4(to, __riscv_vfmul_vf_f32m4(wide, rows.scale_of(token), vl), vl);
      }
      i += static_cast<int64_t>(vl);
    }
    return true;  // codes times a finite scale
  }

  static void weigh(const Int8Rows& rows, int64_t count, float* scores, int64_t pitch, int64_t m) {
    for (int64_t token = 0; token < count; token += columns()) {
      const auto vl = static_cast<size_t>(std::min(columns(), count - token));
      const vfloat32m4_t scales = scales4(rows.from(token), vl);
      for (int64_t row = 0; row < m; ++row) {
        float* weights = scores + row * pitch + token;
        const vfloat32m4_t before = __riscv_vle32_v_f32m4(weights, vl);
        __riscv_vse32_v_f32m4(weights, __riscv_vfmul_vv_f32m4(before, scales, vl), vl);
      }
    }
  }

  static void locate(const Int8Rows& rows, int64_t count, const void** out) {
    auto* to = reinterpret_cast<uint64_t*>(out);
    for (int64_t token = 0; token < count; token += columns()) {
      const auto vl = static_cast<size_t>(std::min(columns(), count - token));
      const KvRowsOf<int8_t> here = rows.codes.from(token);
      const vuint64m8_t offsets = slot_offsets8(here.slots, here.slot_stride, vl);
      __riscv_vse64_v_u64m8(
          to + token, __riscv_vadd_vx_u64m8(offsets, reinterpret_cast<uint64_t>(here.data), vl),
          vl);
    }
    std::fill_n(out + count, kRowsAhead, out[count - 1]);
  }

  static void rows_onto(const float* factors, const float* a, int64_t lda, int64_t m, int64_t k,
                        const void* const* rows, int64_t n, float* c, int64_t ldc) {
    const int64_t tiles = (m + kRowsTile - 1) / kRowsTile;
    const int64_t height = (m + tiles - 1) / tiles;
    for (int64_t row = 0; row < m; row += height) {
      for (int64_t column = 0; column < n; column += columns()) {
        const Product p = {a + row * lda, lda,           k,   nullptr, 0, c + row * ldc + column,
                           ldc,           factors + row, true};
        kInt8RowsTiles[std::min(height, m - row) - 1](
            p, rows, column, static_cast<size_t>(std::min(n - column, columns())));
      }
    }
  }
};

}  // namespace
}  // namespace sgl_rvv
