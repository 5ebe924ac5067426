// Norms of FP16 rows, RVV 1.0 with Zvfh. Requires V, Zfh, Zvfh. Alignment: 2 bytes. Modelled: see
// kernels/README.md.

#include "core/lanes_zvfh.h"
#include "core/norm_kernels.h"
#include "core/norm_rows.h"

namespace sgl_rvv {

void norm_fp16_zvfh(const Norm& call, NormStage stage, int64_t begin, int64_t end, float* scratch) {
  NormRows<ZvfhFp16>::run(call, stage, begin, end, scratch);
}

}  // namespace sgl_rvv
