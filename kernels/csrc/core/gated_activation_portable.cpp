// Gated activations in plain C++. Requires nothing. Compiled with -ffp-contract=off.

#include "core/gated_activation_kernels.h"
#include "core/gated_activation_rows.h"
#include "core/lanes_portable.h"

namespace sgl_rvv {

void gated_activation_bf16_portable(const GatedActivation& call, int64_t begin, int64_t end) {
  GatedActivationRows<PortableBf16>::run(call, begin, end);
}

void gated_activation_fp16_portable(const GatedActivation& call, int64_t begin, int64_t end) {
  GatedActivationRows<PortableFp16>::run(call, begin, end);
}

void gated_activation_fp32_portable(const GatedActivation& call, int64_t begin, int64_t end) {
  GatedActivationRows<PortableFp32>::run(call, begin, end);
}

}  // namespace sgl_rvv
