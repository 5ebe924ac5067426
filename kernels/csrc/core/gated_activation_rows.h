// The gated activations of gated_activation.h on the rows of a format; see norm_rows.h.
#pragma once

#include "core/gated_activation.h"
#include "core/gelu.h"
#include "core/sigmoid.h"
#include "core/steps.h"

namespace sgl_rvv {

template <class Format>
class GatedActivationRows {
  using Float = typename Format::Float;
  using Element = typename Format::Element;

 public:
  static void run(const GatedActivation& call, int64_t begin, int64_t end) {
    switch (call.activation) {
      case Activation::kSilu:
        return rows<Activation::kSilu>(call, begin, end);
      case Activation::kGelu:
        return rows<Activation::kGelu>(call, begin, end);
      case Activation::kGeluTanh:
        return rows<Activation::kGeluTanh>(call, begin, end);
    }
  }

 private:
  template <Activation Kind>
  static void rows(const GatedActivation& call, int64_t begin, int64_t end) {
    const int64_t blocks = activation_blocks(call.columns);
    int64_t row = begin / blocks;
    for (int64_t unit = begin; unit < end; ++row) {
      const int64_t first = unit - row * blocks;
      const int64_t count = blocks - first < end - unit ? blocks - first : end - unit;
      const int64_t stop = (first + count) * kActivationBlock;
      columns<Kind, true>(call, row, first * kActivationBlock,
                          stop < call.columns ? stop : call.columns);
      unit += count;
    }
  }

  template <Activation Kind>
  SGL_RVV_STEP static Float act(Float x, size_t vl) {
    if constexpr (Kind == Activation::kSilu) return silu<Format>(x, vl);
    if constexpr (Kind == Activation::kGelu) return gelu<Format>(x, vl);
    if constexpr (Kind == Activation::kGeluTanh) return gelu_tanh<Format>(x, vl);
  }

  // Quickly: and once more where a result is out of the ordinary, see Format::store_quickly.
  template <Activation Kind, bool Quickly>
  static void columns(const GatedActivation& call, int64_t row, int64_t begin, int64_t end) {
    const auto* gate = static_cast<const Element*>(call.gate) + row * call.stride;
    const auto* up = static_cast<const Element*>(call.up) + row * call.stride;
    auto* out = static_cast<Element*>(call.out) + row * call.out_stride;
    bool right = true;
    size_t vl;
    for (int64_t lane = 0; lane < kStepLanes; lane += static_cast<int64_t>(vl)) {
      vl = Format::lanes(kStepLanes - lane);
      const int64_t column = begin + first_of<Format>(lane);
      Float witness = Format::splat(0.0F, vl);
      const Streams<3> streams = {
          {stream(gate + column), stream(up + column), stream(out + column)}};
      for_steps<2>(streams, end - column, width_of<Format>(static_cast<int64_t>(vl)),
                   [&](const auto& places, auto step) __attribute__((always_inline)) {
                     Float a, b, c, d;
                     Format::load(places.template of<const Element>(0), step, a, b, vl);
                     Format::load(places.template of<const Element>(1), step, c, d, vl);
                     a = Format::multiply(act<Kind>(a, vl), Format::scaled(c, vl), vl);
                     b = Format::multiply(act<Kind>(b, vl), Format::scaled(d, vl), vl);
                     auto* const to = places.template of<Element>(2);
                     if constexpr (Quickly) {
                       Format::store_quickly(to, step, a, b, witness, vl);
                     } else {
                       Format::store(to, step, a, b, vl);
                     }
                   });
      right = Format::finite(witness, vl) && right;
    }
    if (Quickly && !right) columns<Kind, false>(call, row, begin, end);
  }
};

}  // namespace sgl_rvv
