// Rotary embeddings of FP16, RVV 1.0 with Zvfh. Requires V, Zfh, Zvfh. Alignment: 2 bytes.
// Modelled: see kernels/README.md.

#include "core/lanes_zvfh.h"
#include "core/rotary_heads.h"
#include "core/rotary_kernels.h"

namespace sgl_rvv {

void rotary_fp16_zvfh(const Rotary& call, int64_t begin, int64_t end) {
  RotaryOf<ZvfhFp16>::run(call, begin, end);
}

}  // namespace sgl_rvv
