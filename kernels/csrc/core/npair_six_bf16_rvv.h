// The inner loop of packed_linear_bf16_npair_blocked_rvv for a full tile of six rows, where the
// time of a prefill goes, as one block of assembly.
//
// It does what npair::accumulate<Bf16Lanes, 6> does, to the last bit. The order of instructions is
// the point: twelve multiply-adds of LMUL 2 take 24 cycles for one k on an X60, and all else (two
// conversions, one load of weights, six loads of the left operand) fits between them if each is
// issued in the second cycle of a multiply-add, long before its result is needed. Compilers gather
// the loads in front of their first use instead. Modelled, for two k: 63 cycles from LLVM 22, 52
// from this, of which the loop's own four instructions, which wait for the multiply-add before
// them, are 4.
//
// Registers: v8 to v18 hold the even columns of the six rows, v20 to v30 the odd ones; v2 the even
// columns of this k; v4 and v6 by turns its odd columns and the next k's packed row, which is then
// converted: its even half into v2, as soon as the last row has used that, its odd half in place.
// v0 is a mask of ones (all_lanes_rvv.h).
#pragma once

#include <riscv_vector.h>

#include <cstdint>

#include "core/npair_rvv.h"

namespace sgl_rvv::npair {

// Adds `k` rows (2 or more, even) of the BF16 weight at `w`, times `a` ([k][6]), to `sums`
// ([6][2][kLanes]), or to nothing where not `resume`. `vl` lanes of 32 bits, LMUL 2.
inline void accumulate_six_bf16(const float* a, const uint32_t* w, int64_t k, float* sums,
                                bool resume, size_t vl) {
  static_assert(kLanes * sizeof(uint32_t) == 64 && kTileRows == 6, "offsets below");
  const float* const end = a + (k - 2) * kTileRows;
  const uint32_t* second;
  float* at = sums;
  asm volatile(
      "vsetvli zero, %[vl], e32, m2, ta, ma\n\t"
      "vmset.m v0\n\t"
      "beqz %[resume], 1f\n\t"
      // Resume from the sums.
      "vle32.v v8, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vle32.v v20, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vle32.v v10, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vle32.v v22, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vle32.v v12, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vle32.v v24, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vle32.v v14, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vle32.v v26, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vle32.v v16, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vle32.v v28, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vle32.v v18, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vle32.v v30, (%[at])\n\t"
      "j 2f\n\t"
      "1:\n\t"
      "vmv.v.i v8, 0\n\t"
      "vmv.v.i v10, 0\n\t"
      "vmv.v.i v12, 0\n\t"
      "vmv.v.i v14, 0\n\t"
      "vmv.v.i v16, 0\n\t"
      "vmv.v.i v18, 0\n\t"
      "vmv.v.i v20, 0\n\t"
      "vmv.v.i v22, 0\n\t"
      "vmv.v.i v24, 0\n\t"
      "vmv.v.i v26, 0\n\t"
      "vmv.v.i v28, 0\n\t"
      "vmv.v.i v30, 0\n\t"
      "2:\n\t"
      // The first row, converted, and its left operand.
      "vle32.v v6, (%[w])\n\t"
      "addi %[w], %[w], 64\n\t"
      "addi %[x], %[w], 64\n\t"
      "vsll.vi v2, v6, 16, v0.t\n\t"
      "vand.vx v4, v6, %[high], v0.t\n\t"
      "flw ft0, 0(%[a])\n\t"
      "flw ft1, 4(%[a])\n\t"
      "flw ft2, 8(%[a])\n\t"
      "flw ft3, 12(%[a])\n\t"
      "flw ft4, 16(%[a])\n\t"
      "flw ft5, 20(%[a])\n\t"
      "beq %[a], %[end], 4f\n\t"
      "3:\n\t"
      // Two k. The first: odd columns in v4, next row in v6.
      "vfmacc.vf v8, ft0, v2\n\t"
      "vle32.v v6, (%[w])\n\t"
      "flw ft6, 24(%[a])\n\t"
      "vfmacc.vf v10, ft1, v2\n\t"
      "flw ft7, 28(%[a])\n\t"
      "vfmacc.vf v12, ft2, v2\n\t"
      "flw fa0, 32(%[a])\n\t"
      "vfmacc.vf v14, ft3, v2\n\t"
      "flw fa1, 36(%[a])\n\t"
      "vfmacc.vf v16, ft4, v2\n\t"
      "flw fa2, 40(%[a])\n\t"
      "vfmacc.vf v18, ft5, v2\n\t"
      "flw fa3, 44(%[a])\n\t"
      "vsll.vi v2, v6, 16, v0.t\n\t"
      "vfmacc.vf v20, ft0, v4\n\t"
      "vfmacc.vf v22, ft1, v4\n\t"
      "vand.vx v6, v6, %[high], v0.t\n\t"
      "vfmacc.vf v24, ft2, v4\n\t"
      "vfmacc.vf v26, ft3, v4\n\t"
      "vfmacc.vf v28, ft4, v4\n\t"
      "vfmacc.vf v30, ft5, v4\n\t"
      // The second: odd columns in v6, next row in v4.
      "vfmacc.vf v8, ft6, v2\n\t"
      "vle32.v v4, (%[x])\n\t"
      "flw ft0, 48(%[a])\n\t"
      "vfmacc.vf v10, ft7, v2\n\t"
      "flw ft1, 52(%[a])\n\t"
      "vfmacc.vf v12, fa0, v2\n\t"
      "flw ft2, 56(%[a])\n\t"
      "vfmacc.vf v14, fa1, v2\n\t"
      "flw ft3, 60(%[a])\n\t"
      "vfmacc.vf v16, fa2, v2\n\t"
      "flw ft4, 64(%[a])\n\t"
      "vfmacc.vf v18, fa3, v2\n\t"
      "flw ft5, 68(%[a])\n\t"
      "vsll.vi v2, v4, 16, v0.t\n\t"
      "vfmacc.vf v20, ft6, v6\n\t"
      "vfmacc.vf v22, ft7, v6\n\t"
      "vand.vx v4, v4, %[high], v0.t\n\t"
      "vfmacc.vf v24, fa0, v6\n\t"
      "vfmacc.vf v26, fa1, v6\n\t"
      "vfmacc.vf v28, fa2, v6\n\t"
      "vfmacc.vf v30, fa3, v6\n\t"
      "addi %[w], %[w], 128\n\t"
      "addi %[x], %[x], 128\n\t"
      "addi %[a], %[a], 48\n\t"
      "bne %[a], %[end], 3b\n\t"
      "4:\n\t"
      // The last two: nothing is loaded after them.
      "vfmacc.vf v8, ft0, v2\n\t"
      "vle32.v v6, (%[w])\n\t"
      "flw ft6, 24(%[a])\n\t"
      "vfmacc.vf v10, ft1, v2\n\t"
      "flw ft7, 28(%[a])\n\t"
      "vfmacc.vf v12, ft2, v2\n\t"
      "flw fa0, 32(%[a])\n\t"
      "vfmacc.vf v14, ft3, v2\n\t"
      "flw fa1, 36(%[a])\n\t"
      "vfmacc.vf v16, ft4, v2\n\t"
      "flw fa2, 40(%[a])\n\t"
      "vfmacc.vf v18, ft5, v2\n\t"
      "flw fa3, 44(%[a])\n\t"
      "vsll.vi v2, v6, 16, v0.t\n\t"
      "vfmacc.vf v20, ft0, v4\n\t"
      "vfmacc.vf v22, ft1, v4\n\t"
      "vand.vx v6, v6, %[high], v0.t\n\t"
      "vfmacc.vf v24, ft2, v4\n\t"
      "vfmacc.vf v26, ft3, v4\n\t"
      "vfmacc.vf v28, ft4, v4\n\t"
      "vfmacc.vf v30, ft5, v4\n\t"
      "vfmacc.vf v8, ft6, v2\n\t"
      "vfmacc.vf v10, ft7, v2\n\t"
      "vfmacc.vf v12, fa0, v2\n\t"
      "vfmacc.vf v14, fa1, v2\n\t"
      "vfmacc.vf v16, fa2, v2\n\t"
      "vfmacc.vf v18, fa3, v2\n\t"
      "vfmacc.vf v20, ft6, v6\n\t"
      "vfmacc.vf v22, ft7, v6\n\t"
      "vfmacc.vf v24, fa0, v6\n\t"
      "vfmacc.vf v26, fa1, v6\n\t"
      "vfmacc.vf v28, fa2, v6\n\t"
      "vfmacc.vf v30, fa3, v6\n\t"
      "mv %[at], %[sums]\n\t"
      "vse32.v v8, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vse32.v v20, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vse32.v v10, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vse32.v v22, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vse32.v v12, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vse32.v v24, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vse32.v v14, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vse32.v v26, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vse32.v v16, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vse32.v v28, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vse32.v v18, (%[at])\n\t"
      "addi %[at], %[at], 64\n\t"
      "vse32.v v30, (%[at])\n\t"
      : [a] "+&r"(a), [w] "+&r"(w), [x] "=&r"(second), [at] "+&r"(at)
      : [vl] "r"(vl), [sums] "r"(sums), [resume] "r"(resume), [high] "r"(kHighHalf), [end] "r"(end)
      : "memory", "vl", "vtype", "ft0", "ft1", "ft2", "ft3", "ft4", "ft5", "ft6", "ft7", "fa0",
        "fa1", "fa2", "fa3", "v0", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11",
        "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24",
        "v25", "v26", "v27", "v28", "v29", "v30", "v31");
}

}  // namespace sgl_rvv::npair
