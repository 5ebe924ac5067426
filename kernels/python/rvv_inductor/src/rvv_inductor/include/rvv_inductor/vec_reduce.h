// Reduction of one vector to a number: by halves, three steps instead of seven.
#pragma once

// clang-format off
#include "vec_convert.h"
#include "vec_mask.h"
#include "vec_operators.h"
// After them: it uses what they specialise.
#include <ATen/cpu/vec/functional.h>
// clang-format on

namespace at::vec {

template <typename Op>
struct VecReduceAllSIMD<float, Op> {
  static inline float apply(const Op& op, const Vectorized<float>& value) {
    Vectorized<float> sum = value;
    auto x = rvv_inductor::lanes(sum);
    Vectorized<float> other =
        rvv_inductor::vectorized<float>(__builtin_shufflevector(x, x, 4, 5, 6, 7, 4, 5, 6, 7));
    sum = op(sum, other);
    x = rvv_inductor::lanes(sum);
    other = rvv_inductor::vectorized<float>(__builtin_shufflevector(x, x, 2, 3, 2, 3, 2, 3, 2, 3));
    sum = op(sum, other);
    x = rvv_inductor::lanes(sum);
    other = rvv_inductor::vectorized<float>(__builtin_shufflevector(x, x, 1, 1, 1, 1, 1, 1, 1, 1));
    sum = op(sum, other);
    return rvv_inductor::lanes(sum)[0];
  }
};

}  // namespace at::vec
