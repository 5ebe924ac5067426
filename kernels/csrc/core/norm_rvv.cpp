// Norms of BF16 and FP32 rows, RVV 1.0. Requires V. Alignment: that of an element. Modelled: see
// kernels/README.md.

#include "core/lanes_rvv.h"
#include "core/norm_kernels.h"
#include "core/norm_rows.h"

namespace sgl_rvv {
void norm_bf16_rvv(const Norm& call, NormStage stage, int64_t begin, int64_t end, float* scratch) {
  const bool words = in_words({call.input, call.input_stride}) &&
                     in_words({call.residual, call.residual_stride}) &&
                     in_words({call.gate, call.gate_stride}) && in_words({call.weight, 0}) &&
                     in_words({call.bias, 0}) && in_words({call.out, call.out_stride});
  if (words) {
    NormRows<RvvBf16<true>>::run(call, stage, begin, end, scratch);
  } else {
    NormRows<RvvBf16<false>>::run(call, stage, begin, end, scratch);
  }
}

void norm_fp32_rvv(const Norm& call, NormStage stage, int64_t begin, int64_t end, float* scratch) {
  NormRows<RvvFp32>::run(call, stage, begin, end, scratch);
}

}  // namespace sgl_rvv
