// Gated activations of BF16 and FP32, RVV 1.0. Requires V. Alignment: that of an element. Modelled:
// see kernels/README.md.

#include "core/gated_activation_kernels.h"
#include "core/gated_activation_rows.h"
#include "core/lanes_rvv.h"

namespace sgl_rvv {

void gated_activation_bf16_rvv(const GatedActivation& call, int64_t begin, int64_t end) {
  const bool words = in_words({call.gate, call.stride}) && in_words({call.up, call.stride}) &&
                     in_words({call.out, call.out_stride});
  if (words) {
    GatedActivationRows<RvvBf16<true>>::run(call, begin, end);
  } else {
    GatedActivationRows<RvvBf16<false>>::run(call, begin, end);
  }
}

void gated_activation_fp32_rvv(const GatedActivation& call, int64_t begin, int64_t end) {
  GatedActivationRows<RvvFp32>::run(call, begin, end);
}

}  // namespace sgl_rvv
