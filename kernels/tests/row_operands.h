// What the tests of norms, gated activations and rotary embeddings share: operands of BF16, FP16 or
// FP32 in rows with gaps, as numbers.
#pragma once

#include <string>
#include <vector>

#include "harness.h"

namespace sgl_rvv::tests {

[[nodiscard]] int64_t bytes_of(Type type);

// To the type, to nearest, ties to even.
[[nodiscard]] double round_to(Type type, double value);

// Rows of `columns` elements, `gap` elements between them; the last one ends at a fence, or the
// first begins there. Gaps are filled with a pattern that intact() looks for.
class RowOperand {
 public:
  RowOperand(Type type, int64_t rows, int64_t columns, int64_t gap, Fence fence);

  void set(int64_t row, int64_t column, double value);
  [[nodiscard]] double get(int64_t row, int64_t column) const;
  // Numbers like Random::value(), times `scale`.
  void fill(Random& random, double scale = 1.0);

  [[nodiscard]] void* data() const { return memory_.data(); }
  [[nodiscard]] int64_t stride() const { return columns_ + gap_; }
  [[nodiscard]] int64_t columns() const { return columns_; }
  [[nodiscard]] bool intact() const;
  // All rows without the gaps.
  [[nodiscard]] std::vector<unsigned char> bytes() const;

 private:
  [[nodiscard]] unsigned char* at(int64_t row, int64_t column) const;

  Type type_;
  int64_t rows_, columns_, gap_;
  FencedBytes memory_;
};

// Fails where `got` is not between exact - error and exact + error, both rounded to `type`.
void expect_within(Type type, double got, double exact, double error, const std::string& what);

}  // namespace sgl_rvv::tests
