// Rows of an INT8 cache (kv_store.h) in plain C++.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/kv_store.h"

namespace sgl_rvv {
namespace {

template <class Element>
struct PortableKvRows {
  static float largest(const uint16_t* row, int64_t width) {
    float highest = 0.0F;
    float check = 0.0F;  // 0 times anything but a number is NaN
    for (int64_t i = 0; i < width; ++i) {
      const float x = Element::load(row[i]);
      highest = std::max(highest, std::fabs(x));
      check += 0.0F * x;
    }
    return highest + check;
  }

  static void encode(const uint16_t* row, int64_t width, float inverse, int8_t* out) {
    for (int64_t i = 0; i < width; ++i) {
      const float code = std::clamp(Element::load(row[i]) * inverse, -kLargestCode, kLargestCode);
      out[i] = static_cast<int8_t>(std::nearbyint(code));
    }
  }
};

}  // namespace
}  // namespace sgl_rvv
