#include "core/pack_weight.h"

#include <algorithm>
#include <cstring>

#include "core/packed_layout.h"

namespace sgl_rvv {
namespace {

template <class Element>
void pack(const Element* weight, int64_t ld, int64_t n, int64_t k, int64_t block_begin,
          int64_t block_end, Element* packed) {
  // Strips of k: the 32 source rows are read a cache line at a time, and each written line is
  // filled at once.
  constexpr int64_t kStrip = 32;
  for (int64_t block = block_begin; block < block_end; ++block) {
    const int64_t first = block * kBlockColumns;
    const int64_t columns = std::min(kBlockColumns, n - first);
    const Element* source = weight + first * ld;
    Element* target = packed + packed_block_offset(block, k);
    if (columns < kBlockColumns) {
      std::memset(target, 0, static_cast<size_t>(k * kBlockColumns) * sizeof(Element));
    }
    for (int64_t begin = 0; begin < k; begin += kStrip) {
      const int64_t end = std::min(begin + kStrip, k);
      for (int64_t column = 0; column < columns; ++column) {
        const Element* row = source + column * ld;
        for (int64_t i = begin; i < end; ++i) target[i * kBlockColumns + column] = row[i];
      }
    }
  }
}

}  // namespace

void pack_weight_16(const uint16_t* weight, int64_t ld, int64_t n, int64_t k, int64_t block_begin,
                    int64_t block_end, uint16_t* packed) {
  pack(weight, ld, n, k, block_begin, block_end, packed);
}

void pack_weight_8(const int8_t* weight, int64_t ld, int64_t n, int64_t k, int64_t block_begin,
                   int64_t block_end, int8_t* packed) {
  pack(weight, ld, n, k, block_begin, block_end, packed);
}

}  // namespace sgl_rvv
