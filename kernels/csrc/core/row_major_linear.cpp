#include "core/row_major_linear.h"

#include "core/bf16.h"
#include "core/fp16.h"

namespace sgl_rvv {
namespace {

// Where element `i` of a row lies in a group whose even elements come first.
constexpr int64_t even_before_odd(int64_t i) {
  const int64_t within = i % kGroupDepth;
  return i - within + (within % 2) * (kGroupDepth / 2) + within / 2;
}

template <class Element, class Place, class Convert>
void copy_rows(const uint16_t* left, int64_t ld, int64_t k, int64_t row_begin, int64_t row_end,
               void* result, Place place, Convert convert) {
  const int64_t depth = row_major_depth(k);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const uint16_t* source = left + row * ld;
    Element* target = static_cast<Element*>(result) + row * depth;
    for (int64_t i = 0; i < k; ++i) target[place(i)] = convert(source[i]);
    for (int64_t i = k; i < depth; ++i) target[place(i)] = Element{};
  }
}

}  // namespace

void prepare_row_major_left(Type type, Type prepared, const uint16_t* left, int64_t ld, int64_t k,
                            int64_t row_begin, int64_t row_end, void* result) {
  const auto same = [](auto value) { return value; };
  if (prepared != Type::kFp32) {
    copy_rows<uint16_t>(left, ld, k, row_begin, row_end, result, same, same);
  } else if (type == Type::kBf16) {
    copy_rows<float>(left, ld, k, row_begin, row_end, result, even_before_odd, bf16_to_float);
  } else {
    copy_rows<float>(left, ld, k, row_begin, row_end, result, even_before_odd, fp16_to_float);
  }
}

}  // namespace sgl_rvv
