// Norms in plain C++. Requires nothing. Compiled with -ffp-contract=off, so that every architecture
// gives the same bits.

#include "core/lanes_portable.h"
#include "core/norm_kernels.h"
#include "core/norm_rows.h"

namespace sgl_rvv {

void norm_bf16_portable(const Norm& call, NormStage stage, int64_t begin, int64_t end,
                        float* scratch) {
  NormRows<PortableBf16>::run(call, stage, begin, end, scratch);
}

void norm_fp16_portable(const Norm& call, NormStage stage, int64_t begin, int64_t end,
                        float* scratch) {
  NormRows<PortableFp16>::run(call, stage, begin, end, scratch);
}

void norm_fp32_portable(const Norm& call, NormStage stage, int64_t begin, int64_t end,
                        float* scratch) {
  NormRows<PortableFp32>::run(call, stage, begin, end, scratch);
}

}  // namespace sgl_rvv
