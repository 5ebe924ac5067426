#include "core/attention.h"

#include <algorithm>

#include "core/attention_scratch.h"

namespace sgl_rvv {
namespace {

int64_t divided_up(int64_t value, int64_t by) {
  return (value + by - 1) / by;
}

// Keys per split are a multiple of this, so that most tiles are full.
constexpr int64_t kSplitStep = 32;

// Positions that a unit has at least, where there are as many.
constexpr int64_t kLeastPositions = 8;

}  // namespace

int64_t decode_splits(int64_t kv_heads, int64_t threads, int64_t max_splits) {
  return std::clamp<int64_t>(divided_up(threads, kv_heads), 1, max_splits);
}

int64_t split_tokens(int64_t length, int64_t splits) {
  return std::max(kLeastSplit, divided_up(divided_up(length, splits), kSplitStep) * kSplitStep);
}

std::vector<ExtendUnit> extend_units(const ExtendSequence* sequences, int64_t count,
                                     const AttentionSizes& sizes, int64_t threads,
                                     int64_t* largest_unit) {
  int64_t tokens = 0;
  for (int64_t i = 0; i < count; ++i) tokens += sequences[i].tokens;
  const int64_t most = std::max<int64_t>(1, kUnitRows / sizes.group());
  const int64_t fair = divided_up(tokens * sizes.kv_heads, threads);
  const int64_t positions = std::clamp(fair, std::min(most, kLeastPositions), most);
  *largest_unit = 0;
  std::vector<ExtendUnit> units;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t kv_head = 0; kv_head < sizes.kv_heads; ++kv_head) {
      for (int64_t begin = 0; begin < sequences[i].tokens; begin += positions) {
        const int64_t here = std::min(positions, sequences[i].tokens - begin);
        units.push_back({i, kv_head, begin, here});
        *largest_unit = std::max(*largest_unit, here);
      }
    }
  }
  return units;
}

int64_t decode_scratch_floats(const AttentionSizes& sizes, int64_t splits, int64_t columns) {
  return DecodeScratch::lay_out(nullptr, sizes, splits, columns).floats;
}

int64_t extend_scratch_floats(const AttentionSizes& sizes, int64_t largest_unit, int64_t columns) {
  return ExtendScratch::lay_out(nullptr, sizes, largest_unit, columns).floats;
}

int64_t score_columns(const CpuFeatures& cpu) {
  return std::max<int64_t>(32, cpu.vlen_bits / 8);
}

}  // namespace sgl_rvv
