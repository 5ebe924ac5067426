// Packing of weights into the layout of packed_layout.h. Pure data movement: BF16 and FP16 alike.
#pragma once

#include <cstdint>

namespace sgl_rvv {

// Packs blocks [block_begin, block_end) of `weight` ([n, k], row stride `ld` in elements, unit
// column stride) into `packed` (packed_elements(n, k) elements). Blocks are independent: call it in
// parallel over blocks.
void pack_weight_16(const uint16_t* weight, int64_t ld, int64_t n, int64_t k, int64_t block_begin,
                    int64_t block_end, uint16_t* packed);

// The same of an INT8 weight.
void pack_weight_8(const int8_t* weight, int64_t ld, int64_t n, int64_t k, int64_t block_begin,
                   int64_t block_end, int8_t* packed);

}  // namespace sgl_rvv
