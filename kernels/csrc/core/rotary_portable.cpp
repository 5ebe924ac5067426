// Rotary embeddings in plain C++. Requires nothing. Compiled with -ffp-contract=off.

#include "core/lanes_portable.h"
#include "core/rotary_heads.h"
#include "core/rotary_kernels.h"

namespace sgl_rvv {

void rotary_bf16_portable(const Rotary& call, int64_t begin, int64_t end) {
  RotaryOf<PortableBf16>::run(call, begin, end);
}

void rotary_fp16_portable(const Rotary& call, int64_t begin, int64_t end) {
  RotaryOf<PortableFp16>::run(call, begin, end);
}

void rotary_fp32_portable(const Rotary& call, int64_t begin, int64_t end) {
  RotaryOf<PortableFp32>::run(call, begin, end);
}

}  // namespace sgl_rvv
