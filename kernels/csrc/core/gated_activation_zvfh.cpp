// Gated activations of FP16, RVV 1.0 with Zvfh. Requires V, Zfh, Zvfh. Alignment: 2 bytes.
// Modelled: see kernels/README.md.

#include "core/gated_activation_kernels.h"
#include "core/gated_activation_rows.h"
#include "core/lanes_zvfh.h"

namespace sgl_rvv {

void gated_activation_fp16_zvfh(const GatedActivation& call, int64_t begin, int64_t end) {
  GatedActivationRows<ZvfhFp16>::run(call, begin, end);
}

}  // namespace sgl_rvv
