#include "core/int8_linear.h"

#include <algorithm>
#include <cstring>

namespace sgl_rvv {
namespace {

constexpr int64_t kWord = 8;  // codes in 64 bits: two quads, the first in the low half

// Per word of a panel, over all rows so far: which of its sums of |a| are 256 or more.
struct TooLarge {
  uint64_t pairs;  // bits 8, 24, 40, 56
  uint64_t quads;  // bits 9, 41
};

// |a| of 8 codes as bytes; 128 of -128.
uint64_t magnitudes(uint64_t codes) {
  const uint64_t negative = codes >> 7 & 0x0101010101010101U;
  return (codes ^ negative * 0xff) + negative;
}

TooLarge too_large(const int8_t* rows, int64_t count, int64_t word) {
  TooLarge found{};
  for (int64_t row = 0; row < count; ++row) {
    uint64_t codes;
    std::memcpy(&codes, rows + row * kInt8PanelDepth + word * kWord, sizeof codes);
    const uint64_t bytes = magnitudes(codes);
    // A pair's sum is at most 256, a quad's 512: with 256 more, bit 9 says whether it was 256.
    const uint64_t pairs = (bytes & 0x00ff00ff00ff00ffU) + (bytes >> 8 & 0x00ff00ff00ff00ffU);
    const uint64_t quads = (pairs & 0x0000ffff0000ffffU) + (pairs >> 16 & 0x0000ffff0000ffffU);
    found.pairs |= pairs & 0x0100010001000100U;
    found.quads |= (quads + 0x0000010000000100U) & 0x0000020000000200U;
  }
  return found;
}

// The largest group of the word's quad 0 or 1.
uint8_t group_of(TooLarge found, int64_t quad) {
  const auto shift = static_cast<unsigned>(32 * quad);
  if ((found.quads >> shift & 0xffffffffU) == 0) return 4;
  return (found.pairs >> shift & 0xffffffffU) == 0 ? 2 : 1;
}

// `rows` lie as [count][256], zero after their last code.
void find_runs(const int8_t* rows, int64_t count, int64_t quads, Int8Run* runs) {
  int64_t last = -1;
  for (int64_t quad = 0; quad < quads;) {
    const TooLarge found = too_large(rows, count, quad / 2);
    for (int64_t of_word = 0; of_word < 2 && quad < quads; ++of_word, ++quad) {
      const uint8_t group = group_of(found, of_word);
      if (last >= 0 && runs[last].group == group) {
        ++runs[last].quads;
      } else {
        runs[++last] = {1, group};
      }
    }
  }
}

}  // namespace

void prepare_int8_left(const int8_t* rows, int64_t ld, int64_t m, int64_t k, int64_t tile,
                       int8_t* codes, Int8Run* runs) {
  const int64_t first = tile * int8_tile_rows(m);
  const int64_t count = std::min(int8_tile_rows(m), m - first);
  const int64_t panels = int8_panels(k);
  for (int64_t panel = 0; panel < panels; ++panel) {
    const int64_t begin = panel * kInt8PanelDepth;
    const int64_t depth = std::min(kInt8PanelDepth, k - begin);
    int8_t* target = codes + (first * panels + panel * count) * kInt8PanelDepth;
    for (int64_t row = 0; row < count; ++row) {
      int8_t* place = target + row * kInt8PanelDepth;
      std::memcpy(place, rows + row * ld + begin, static_cast<size_t>(depth));
      std::memset(place + depth, 0, static_cast<size_t>(kInt8PanelDepth - depth));
    }
    find_runs(target, count, depth / kQuad, runs + (tile * panels + panel) * kPanelQuads);
  }
}

}  // namespace sgl_rvv
