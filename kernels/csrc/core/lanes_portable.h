// The lanes of lanes_rvv.h in plain C++, to the last bit: 16 lanes, the first half of a step first.
// For files that are compiled with -ffp-contract=off.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/bf16.h"
#include "core/fp16.h"
#include "core/steps.h"

namespace sgl_rvv {

struct PortableLanes {
  static constexpr size_t kLanes = 16;

  struct Float {
    float lane[kLanes];
  };

  static size_t lanes(int64_t wanted) { return std::min(kLanes, static_cast<size_t>(wanted)); }

  template <class Value>
  static Float each(size_t vl, Value value) {
    Float result = {};
    for (size_t i = 0; i < vl; ++i) result.lane[i] = value(i);
    return result;
  }

  static Float splat(float value, size_t vl) {
    return each(vl, [&](size_t) { return value; });
  }
  static Float load_floats(const float* from, size_t vl) {
    return each(vl, [&](size_t i) { return from[i]; });
  }
  static void store_floats(float* to, const Float& a, size_t vl) { std::copy_n(a.lane, vl, to); }

  static Float add(const Float& a, const Float& b, size_t vl) {
    return each(vl, [&](size_t i) { return a.lane[i] + b.lane[i]; });
  }
  static Float add(const Float& a, float b, size_t vl) {
    return each(vl, [&](size_t i) { return a.lane[i] + b; });
  }
  static Float subtract(const Float& a, float b, size_t vl) {
    return each(vl, [&](size_t i) { return a.lane[i] - b; });
  }
  static Float multiply(const Float& a, const Float& b, size_t vl) {
    return each(vl, [&](size_t i) { return a.lane[i] * b.lane[i]; });
  }
  static Float multiply(const Float& a, float b, size_t vl) {
    return each(vl, [&](size_t i) { return a.lane[i] * b; });
  }
  static Float multiply_add(const Float& a, const Float& b, const Float& c, size_t vl) {
    return each(vl, [&](size_t i) { return std::fma(b.lane[i], c.lane[i], a.lane[i]); });
  }
  static Float multiply_add(const Float& a, float b, const Float& c, size_t vl) {
    return each(vl, [&](size_t i) { return std::fma(b, c.lane[i], a.lane[i]); });
  }
  static Float multiply_subtract(const Float& a, const Float& b, const Float& c, size_t vl) {
    return each(vl, [&](size_t i) { return std::fma(-b.lane[i], c.lane[i], a.lane[i]); });
  }
  static Float held(const Float& a, float most, size_t vl) {
    return each(vl, [&](size_t i) { return std::fmin(std::fmax(a.lane[i], -most), most); });
  }
  static Float positive(const Float& a, size_t vl) {
    return each(vl, [&](size_t i) { return a.lane[i] - std::fmin(a.lane[i], 0.0F); });
  }
  static Float magnitude(const Float& a, size_t vl) {
    return each(vl, [&](size_t i) { return std::fabs(a.lane[i]); });
  }
  static bool finite(const Float&, size_t) { return true; }
  static Float power_of_two(const Float& a, size_t vl) {
    return each(vl, [&](size_t i) {
      uint32_t bits;
      std::memcpy(&bits, &a.lane[i], sizeof bits);
      bits <<= 23;
      float power;
      std::memcpy(&power, &bits, sizeof power);
      return power;
    });
  }
  static Float reciprocal(const Float& a, size_t vl) {
    return each(vl, [&](size_t i) { return 1.0F / a.lane[i]; });
  }
};

// `Format` converts one element to FP32 and back.
template <class Format>
struct PortableRows : PortableLanes {
  using Element = typename Format::Element;
  static constexpr float kScale = Format::kScale;
  static constexpr bool kEvenOdd = Format::kEvenOdd;

  static Float scaled(const Float& value, size_t vl) { return multiply(value, kScale, vl); }

  static void load(const Element* from, WholeStep, Float& first, Float& second, size_t vl) {
    load(from, PartStep{2 * vl}, first, second, vl);
  }
  static void load(const Element* from, PartStep step, Float& first, Float& second, size_t vl) {
    const auto at = [&](size_t i) { return i < step.count ? Format::widened(from[i]) : 0.0F; };
    first = each(vl, [&](size_t i) { return at(kEvenOdd ? 2 * i : i); });
    second = each(vl, [&](size_t i) { return at(kEvenOdd ? 2 * i + 1 : vl + i); });
  }

  static void store(Element* to, WholeStep, const Float& first, const Float& second, size_t vl) {
    store(to, PartStep{2 * vl}, first, second, vl);
  }
  static void store(Element* to, PartStep step, const Float& first, const Float& second,
                    size_t vl) {
    for (size_t i = 0; i < step.count; ++i) {
      const bool in_first = kEvenOdd ? i % 2 == 0 : i < vl;
      const size_t lane = kEvenOdd ? i / 2 : i % vl;
      to[i] = Format::rounded(in_first ? first.lane[lane] : second.lane[lane]);
    }
  }

  template <class Step>
  static void store_quickly(Element* to, Step step, const Float& first, const Float& second,
                            const Float&, size_t vl) {
    store(to, step, first, second, vl);
  }
  template <class Step>
  static void store_sum_quickly(Element* to, Step step, const Float& first, const Float& second,
                                const Float&, size_t vl) {
    store(to, step, scaled(first, vl), scaled(second, vl), vl);
  }

  static void load_pairs(const Element* from, WholeStep, Float& a, Float& b, size_t vl) {
    load_pairs(from, PartStep{2 * vl}, a, b, vl);
  }
  static void load_pairs(const Element* from, PartStep step, Float& a, Float& b, size_t vl) {
    const auto at = [&](size_t i) { return i < step.count ? Format::widened(from[i]) : 0.0F; };
    a = each(vl, [&](size_t i) { return at(2 * i); });
    b = each(vl, [&](size_t i) { return at(2 * i + 1); });
  }
  static void store_pairs(Element* to, WholeStep, const Float& a, const Float& b, size_t vl) {
    store_pairs(to, PartStep{2 * vl}, a, b, vl);
  }
  static void store_pairs(Element* to, PartStep step, const Float& a, const Float& b, size_t) {
    for (size_t i = 0; i < step.count; ++i) {
      to[i] = Format::rounded(i % 2 == 0 ? a.lane[i / 2] : b.lane[i / 2]);
    }
  }
  template <class Step>
  static void store_pairs_quickly(Element* to, Step step, const Float& a, const Float& b,
                                  const Float&, size_t vl) {
    store_pairs(to, step, a, b, vl);
  }

  static float one(Element value) { return Format::widened(value); }
};

struct PortableBf16Format {
  using Element = uint16_t;
  static constexpr float kScale = 0x1p-16F;
  static constexpr bool kEvenOdd = true;
  static float widened(Element value) { return bf16_to_float(value); }
  static Element rounded(float scaled) {
    return std::isnan(scaled) ? 0x7fc0 : float_to_bf16(scaled * 65536.0F + 0.0F);
  }
};

struct PortableFp16Format {
  using Element = uint16_t;
  static constexpr float kScale = 1.0F;
  static constexpr bool kEvenOdd = false;
  static float widened(Element value) { return fp16_to_float(value); }
  static Element rounded(float value) { return std::isnan(value) ? 0x7e00 : float_to_fp16(value); }
};

struct PortableFp32Format {
  using Element = float;
  static constexpr float kScale = 1.0F;
  static constexpr bool kEvenOdd = false;
  static float widened(Element value) { return value; }
  static Element rounded(float value) { return value; }
};

using PortableBf16 = PortableRows<PortableBf16Format>;
using PortableFp16 = PortableRows<PortableFp16Format>;
using PortableFp32 = PortableRows<PortableFp32Format>;

}  // namespace sgl_rvv
