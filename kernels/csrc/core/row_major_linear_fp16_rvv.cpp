// FP16 row-major linear for RVV 1.0 without Zvfh: vectors along K, one row of the weight at a time,
// for one or two rows of the left operand. 32 weights are read as 16 lanes of 32 bits, whose halves
// become FP32 in their own lanes (fp16_lanes_rvv.h); even and odd k have sums of their own.
//
// Requires V. The conversion is what limits it. Groups are LMUL 2: at VLEN 128 a row is done in two
// halves of 8 lanes.

#include <riscv_vector.h>

#include "core/all_lanes_rvv.h"
#include "core/fp16.h"
#include "core/fp16_lanes_rvv.h"
#include "core/kernels_rvv.h"
#include "core/partial_sums.h"

namespace sgl_rvv {
namespace {

constexpr int64_t kLanes = kGroupDepth / 2;

using Float = vfloat32m2_t;
using Bits = vuint32m2_t;
using Mask = vbool16_t;

// Sums [Rows][2][kLanes], even k before odd ones, of lanes [lane, lane + vl).
template <int Rows>
void accumulate(const float* left, int64_t depth, const uint16_t* weight, int64_t k, int64_t lane,
                size_t vl, float* sums) {
  const Mask all = all_lanes(vl);
  Float e0 = __riscv_vfmv_v_f_f32m2(0.0F, vl);
  Float o0 = e0, e1 = e0, o1 = e0;
  const float* x = left + lane;
  const float* y = x + (Rows - 1) * depth;
  const uint16_t* w = weight + 2 * lane;
  for (; k > 2 * lane; k -= kGroupDepth, x += kGroupDepth, y += kGroupDepth, w += kGroupDepth) {
    const int64_t rest = k - 2 * lane;
    const size_t count = rest < 2 * static_cast<int64_t>(vl) ? static_cast<size_t>(rest) : 2 * vl;
    const Bits bits = __riscv_vreinterpret_v_u16m2_u32m2(
        __riscv_vle16_v_u16m2_tu(__riscv_vmv_v_x_u16m2(0, 2 * vl), w, count));
    const Float even = fp16_from_high_half(__riscv_vsll_vx_u32m2_m(all, bits, 16, vl), all, vl);
    const Float odd = fp16_from_high_half(bits, all, vl);
    e0 = __riscv_vfmacc_vv_f32m2(e0, __riscv_vle32_v_f32m2(x, vl), even, vl);
    o0 = __riscv_vfmacc_vv_f32m2(o0, __riscv_vle32_v_f32m2(x + kLanes, vl), odd, vl);
    if constexpr (Rows > 1) {
      e1 = __riscv_vfmacc_vv_f32m2(e1, __riscv_vle32_v_f32m2(y, vl), even, vl);
      o1 = __riscv_vfmacc_vv_f32m2(o1, __riscv_vle32_v_f32m2(y + kLanes, vl), odd, vl);
    }
  }
  __riscv_vse32_v_f32m2(sums + lane, e0, vl);
  __riscv_vse32_v_f32m2(sums + kLanes + lane, o0, vl);
  if constexpr (Rows > 1) __riscv_vse32_v_f32m2(sums + 2 * kLanes + lane, e1, vl);
  if constexpr (Rows > 1) __riscv_vse32_v_f32m2(sums + 3 * kLanes + lane, o1, vl);
}

template <int Rows>
void tile(const RowMajorLinear& call, int64_t row, int64_t column) {
  alignas(64) float sums[Rows * kGroupDepth];
  const int64_t depth = row_major_depth(call.k);
  const float* left = static_cast<const float*>(call.left) + row * depth;
  for (int64_t lane = 0; lane < kLanes;) {
    const size_t vl = __riscv_vsetvl_e32m2(static_cast<size_t>(kLanes - lane));
    accumulate<Rows>(left, depth, call.weight + column * call.weight_stride, call.k, lane, vl,
                     sums);
    lane += static_cast<int64_t>(vl);
  }
  for (int64_t i = 0; i < Rows; ++i) {
    // The tree of row_major_linear.h: its last step adds the even sums' total to the odd ones'.
    float* of_row = sums + i * kGroupDepth;
    float sum = sum_tree<kLanes>(of_row) + sum_tree<kLanes>(of_row + kLanes);
    if (call.bias != nullptr) sum += call.bias[column];
    call.out[(row + i) * call.out_stride + column] = float_to_fp16(sum);
  }
}

}  // namespace

void row_major_linear_fp16_along_k_rvv(const RowMajorLinear& call, int64_t column_begin,
                                       int64_t column_end) {
  for (int64_t column = column_begin; column < column_end; ++column) {
    int64_t row = 0;
    for (; row + 2 <= call.m; row += 2) tile<2>(call, row, column);
    if (row < call.m) tile<1>(call, row, column);
  }
}

}  // namespace sgl_rvv
