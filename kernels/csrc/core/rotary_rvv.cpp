// Rotary embeddings of BF16 and FP32, RVV 1.0. Requires V. Alignment: that of an element. Modelled:
// see kernels/README.md.

#include "core/lanes_rvv.h"
#include "core/rotary_heads.h"
#include "core/rotary_kernels.h"

namespace sgl_rvv {

void rotary_bf16_rvv(const Rotary& call, int64_t begin, int64_t end) {
  const auto all_in_words = [](const RotaryHeads& of) {
    return in_words({of.from, of.token_stride}) && in_words({of.from, of.head_stride}) &&
           in_words({of.to, of.to_token_stride}) && in_words({of.to, of.to_head_stride});
  };
  const bool words = call.rotary % 4 == 0 && all_in_words(call.query) && all_in_words(call.key);
  if (words) {
    RotaryOf<RvvBf16<true>>::run(call, begin, end);
  } else {
    RotaryOf<RvvBf16<false>>::run(call, begin, end);
  }
}

void rotary_fp32_rvv(const Rotary& call, int64_t begin, int64_t end) {
  RotaryOf<RvvFp32>::run(call, begin, end);
}

}  // namespace sgl_rvv
