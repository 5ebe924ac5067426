// The rotary embedding of rotary.h on the rows of a format; see norm_rows.h.
#pragma once

#include <cstring>

#include "core/rotary.h"
#include "core/steps.h"

namespace sgl_rvv {

template <class Format>
class RotaryOf {
  using Float = typename Format::Float;
  using Element = typename Format::Element;

 public:
  static void run(const Rotary& call, int64_t begin, int64_t end) {
    // Cosines and sines of a token, times Format::kScale, in steps as the heads' elements are met.
    alignas(64) float cosines[kLargestRotary / 2 + kStepColumns];
    alignas(64) float sines[kLargestRotary / 2 + kStepColumns];
    const int64_t heads = call.query.heads + call.key.heads;
    for (int64_t unit = begin; unit < end;) {
      const int64_t token = unit / heads;
      const int64_t first = unit - token * heads;
      const int64_t last = heads - first < end - unit ? heads : first + end - unit;
      turns_of(call, token, cosines, sines);
      turn(call, call.query, token, first, last, cosines, sines);
      turn(call, call.key, token, first - call.query.heads, last - call.query.heads, cosines,
           sines);
      unit += last - first;
    }
  }

 private:
  // Heads [first, last) of a token.
  static void turn(const Rotary& call, const RotaryHeads& of, int64_t token, int64_t first,
                   int64_t last, const float* cosines, const float* sines) {
    if (first < 0) first = 0;
    if (last > of.heads) last = of.heads;
    if (first >= last) return;
    const Heads heads = {
        static_cast<const Element*>(of.from) + token * of.token_stride + first * of.head_stride,
        static_cast<uintptr_t>(of.head_stride) * sizeof(Element),
        static_cast<Element*>(of.to) + token * of.to_token_stride + first * of.to_head_stride,
        static_cast<uintptr_t>(of.to_head_stride) * sizeof(Element), last - first};
    if (call.neox) {
      if (!neox<true>(call.rotary, heads, cosines, sines)) {
        neox<false>(call.rotary, heads, cosines, sines);
      }
    } else if (!interleaved<true>(call.rotary, heads, cosines, sines)) {
      interleaved<false>(call.rotary, heads, cosines, sines);
    }
    const int64_t rest = call.head - call.rotary;
    for (int64_t head = 0; rest > 0 && head < heads.count; ++head) {
      std::memcpy(heads.to + head * of.to_head_stride + call.rotary,
                  heads.from + head * of.head_stride + call.rotary,
                  static_cast<size_t>(rest) * sizeof(Element));
    }
  }

  // Heads of a token: a stream's step goes to the next one.
  struct Heads {
    const Element* from;
    uintptr_t from_bytes;
    Element* to;
    uintptr_t to_bytes;
    int64_t count;

    [[nodiscard]] Stream input(int64_t element) const {
      return {reinterpret_cast<uintptr_t>(from + element), from_bytes};
    }
    [[nodiscard]] Stream output(int64_t element) const {
      return {reinterpret_cast<uintptr_t>(to + element), to_bytes};
    }
    [[nodiscard]] int64_t steps() const { return count * kStepColumns; }
  };

  // body(i, step, vl) for steps of `count` elements from element i on. Steps are the same as those
  // of copy_turns().
  template <bool Pairs, class Body>
  static void for_parts(int64_t count, Body body) {
    size_t vl;
    for (int64_t lane = 0; lane < kStepLanes; lane += static_cast<int64_t>(vl)) {
      vl = Format::lanes(kStepLanes - lane);
      const auto lanes = static_cast<int64_t>(vl);
      const int64_t width = Pairs ? 2 * lanes : width_of<Format>(lanes);
      int64_t i = Pairs ? 2 * lane : first_of<Format>(lane);
      for (; i + width <= count; i += kStepColumns) body(i, WholeStep{}, vl);
      if (i < count) body(i, PartStep{static_cast<size_t>(count - i)}, vl);
    }
  }

  // Each part of all heads, with its cosines and sines in registers. False where a result is out of
  // the ordinary, see Format::store_quickly.
  template <bool Quickly>
  static bool neox(int64_t rotary, const Heads& heads, const float* cosines, const float* sines) {
    const int64_t pairs = rotary / 2;
    bool right = true;
    for_parts<false>(pairs, [&](int64_t i, auto step, size_t vl) {
      const int64_t second = i + second_of<Format>(static_cast<int64_t>(vl));
      const Float c = Format::load_floats(cosines + i, vl);
      const Float d = Format::load_floats(cosines + second, vl);
      const Float s = Format::load_floats(sines + i, vl);
      const Float t = Format::load_floats(sines + second, vl);
      Float witness = Format::splat(0.0F, vl);
      const Streams<4> rows = {
          {heads.input(i), heads.input(pairs + i), heads.output(i), heads.output(pairs + i)}};
      for_steps<2>(rows, heads.steps(), kStepColumns,
                   [&](const auto& at, WholeStep) __attribute__((always_inline)) {
                     Float x, y, u, v;
                     Format::load(at.template of<const Element>(0), step, x, y, vl);
                     Format::load(at.template of<const Element>(1), step, u, v, vl);
                     const Float a = turned(x, u, c, s, vl);
                     const Float b = turned(y, v, d, t, vl);
                     const Float e = turned_second(x, u, c, s, vl);
                     const Float f = turned_second(y, v, d, t, vl);
                     if constexpr (Quickly) {
                       Format::store_quickly(at.template of<Element>(2), step, a, b, witness, vl);
                       Format::store_quickly(at.template of<Element>(3), step, e, f, witness, vl);
                     } else {
                       Format::store(at.template of<Element>(2), step, a, b, vl);
                       Format::store(at.template of<Element>(3), step, e, f, vl);
                     }
                   });
      right = Format::finite(witness, vl) && right;
    });
    return right;
  }

  template <bool Quickly>
  static bool interleaved(int64_t rotary, const Heads& heads, const float* cosines,
                          const float* sines) {
    bool right = true;
    for_parts<true>(rotary, [&](int64_t i, auto step, size_t vl) {
      const Float c = Format::load_floats(cosines + i / 2, vl);
      const Float s = Format::load_floats(sines + i / 2, vl);
      Float witness = Format::splat(0.0F, vl);
      const Streams<2> rows = {{heads.input(i), heads.output(i)}};
      for_steps<2>(rows, heads.steps(), kStepColumns,
                   [&](const auto& at, WholeStep) __attribute__((always_inline)) {
                     Float x, y;
                     Format::load_pairs(at.template of<const Element>(0), step, x, y, vl);
                     const Float a = turned(x, y, c, s, vl);
                     const Float b = turned_second(x, y, c, s, vl);
                     Element* const to = at.template of<Element>(1);
                     if constexpr (Quickly) {
                       Format::store_pairs_quickly(to, step, a, b, witness, vl);
                     } else {
                       Format::store_pairs(to, step, a, b, vl);
                     }
                   });
      right = Format::finite(witness, vl) && right;
    });
    return right;
  }

  SGL_RVV_STEP static Float turned(Float x, Float y, Float cosine, Float sine, size_t vl) {
    return Format::multiply_subtract(Format::multiply(x, cosine, vl), y, sine, vl);
  }

  SGL_RVV_STEP static Float turned_second(Float x, Float y, Float cosine, Float sine, size_t vl) {
    return Format::multiply_add(Format::multiply(y, cosine, vl), x, sine, vl);
  }

  static void turns_of(const Rotary& call, int64_t token, float* cosines, float* sines) {
    const int64_t row = call.positions[token] * call.cache_stride;
    if (call.cache_is_float) {
      copy_turns(call, static_cast<const float*>(call.cache) + row, cosines, sines,
                 [](float value) { return value * Format::kScale; });
    } else {
      copy_turns(call, static_cast<const Element*>(call.cache) + row, cosines, sines,
                 [](Element value) { return Format::one(value) * Format::kScale; });
    }
  }

  template <class From, class Convert>
  static void copy_turns(const Rotary& call, const From* row, float* cosines, float* sines,
                         Convert convert) {
    const int64_t pairs = call.rotary / 2;
    const bool even_odd = call.neox && Format::kEvenOdd;
    const auto vl = static_cast<int64_t>(Format::lanes(kStepLanes));
    // What follows the last pair in its step is met too, and stored nowhere.
    for (int64_t i = pairs / kStepColumns * kStepColumns; i < pairs + kStepColumns; ++i) {
      cosines[i] = sines[i] = 0.0F;
    }
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t within = i % (2 * vl);
      const int64_t place = even_odd ? i - within + within % 2 * vl + within / 2 : i;
      cosines[place] = convert(row[i]);
      sines[place] = convert(row[pairs + i]);
    }
  }
};

}  // namespace sgl_rvv
