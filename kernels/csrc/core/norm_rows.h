// The norms of norm.h on the rows of a format: RvvBf16, RvvFp32 (lanes_rvv.h), ZvfhFp16
// (lanes_zvfh.h), or a portable one (lanes_portable.h). A format belongs to files of one set of
// flags, and so does what is made of it here.
#pragma once

#include <cmath>

#include "core/norm.h"
#include "core/partial_sums.h"
#include "core/sigmoid.h"
#include "core/steps.h"

namespace sgl_rvv {

template <class Format>
class NormRows {
  using Float = typename Format::Float;
  using Element = typename Format::Element;

  static_assert(kNormSums == kStepLanes);
  static_assert(kNormBlock % kStepColumns == 0);

 public:
  static void run(const Norm& call, NormStage stage, int64_t begin, int64_t end, float* scratch) {
    if (stage != NormStage::kRows) {
      NormRows(call, 0, scratch).blocks(stage, begin, end);
      return;
    }
    for (int64_t row = begin; row < end; ++row) NormRows(call, row, scratch).row();
  }

 private:
  NormRows(const Norm& call, int64_t row, float* scratch)
      : call_(call),
        input_(static_cast<const Element*>(call.input) + row * call.input_stride),
        residual_(static_cast<Element*>(call.residual) + row * call.residual_stride),
        gate_(static_cast<const Element*>(call.gate) + row * call.gate_stride),
        out_(static_cast<Element*>(call.out) + row * call.out_stride),
        sums_(scratch),
        deviations_(scratch + norm_blocks(call.columns) * kNormSums),
        kept_(deviations_ + norm_blocks(call.columns) * kNormSums) {}

  void row() const {
    const int64_t blocks = norm_blocks(call_.columns);
    add_up(0, blocks, sums_);
    float sum = sum_tree<kNormSums>(sums_);
    float mean = 0.0F;
    if (layer()) {
      mean = sum / columns();
      add_up_squares(0, blocks, mean, sums_);
      sum = sum_tree<kNormSums>(sums_);
    }
    finish(0, call_.columns, mean, sum);
  }

  void blocks(NormStage stage, int64_t first, int64_t last) const {
    if (stage == NormStage::kSums) {
      for (int64_t block = first; block < last; ++block) {
        add_up(block, block + 1, sums_ + block * kNormSums);
      }
      return;
    }
    const float sum = total(sums_);
    const float mean = layer() ? sum / columns() : 0.0F;
    if (stage == NormStage::kDeviations) {
      for (int64_t block = first; block < last; ++block) {
        add_up_squares(block, block + 1, mean, deviations_ + block * kNormSums);
      }
    } else {
      finish(first * kNormBlock, end_of(last), mean, layer() ? total(deviations_) : sum);
    }
  }

  [[nodiscard]] bool layer() const { return call_.kind == NormKind::kLayer; }
  [[nodiscard]] float columns() const { return static_cast<float>(call_.columns); }

  // The column after the blocks before `block`.
  [[nodiscard]] int64_t end_of(int64_t block) const {
    const int64_t end = block * kNormBlock;
    return end < call_.columns && block < norm_blocks(call_.columns) ? end : call_.columns;
  }

  // What gives the values of a step: load(places, step, a, b, vl), from `kRows` rows.

  struct Input {
    static constexpr int kRows = 1;

    template <class Where, class Step>
    SGL_RVV_STEP void load(const Where& places, Step step, Float& a, Float& b, size_t vl) const {
      Format::load(places.template of<const Element>(0), step, a, b, vl);
    }
  };

  // What was kept in FP32: first lanes, second lanes.
  struct Kept {
    static constexpr int kRows = 2;

    template <class Where, class Step>
    SGL_RVV_STEP void load(const Where& places, Step, Float& a, Float& b, size_t vl) const {
      a = Format::load_floats(places.template of<float>(0), vl);
      b = Format::load_floats(places.template of<float>(1), vl);
    }
  };

  // The input, which is kept.
  struct KeepingInput {
    static constexpr int kRows = 3;

    template <class Where, class Step>
    SGL_RVV_STEP void load(const Where& places, Step step, Float& a, Float& b, size_t vl) const {
      Format::load(places.template of<const Element>(0), step, a, b, vl);
      Format::store_floats(places.template of<float>(1), a, vl);
      Format::store_floats(places.template of<float>(2), b, vl);
    }
  };

  struct Deviation {
    static constexpr int kRows = 2;
    float mean;

    template <class Where, class Step>
    SGL_RVV_STEP void load(const Where& places, Step step, Float& a, Float& b, size_t vl) const {
      Kept{}.load(places, step, a, b, vl);
      a = Format::subtract(a, mean, vl);
      b = Format::subtract(b, mean, vl);
    }
  };

  struct Square {
    SGL_RVV_STEP static Float add(Float sum, Float value, size_t vl) {
      return Format::multiply_add(sum, value, value, vl);
    }
  };
  struct Itself {
    SGL_RVV_STEP static Float add(Float sum, Float value, size_t vl) {
      return Format::add(sum, value, vl);
    }
  };

  // The rows' streams from a column on; `second` is where the second lanes of a step are.
  Stream input_from(int64_t column) const { return stream(input_ + column); }
  Stream residual_from(int64_t column) const { return stream(residual_ + column); }
  Stream kept_from(int64_t column) const { return stream(kept_ + column); }
  Stream weight_from(int64_t column) const {
    return stream(static_cast<const Element*>(call_.weight) + column);
  }

  // Of blocks [first, last): what the mean or the variance is made of; and the sum with the
  // residual.
  void add_up(int64_t first, int64_t last, float* sums) const {
    if (call_.residual != nullptr) {
      const bool right = layer() ? sum_with_residual<Itself>(first, last, sums)
                                 : sum_with_residual<Square>(first, last, sums);
      if (!right) store_residual(first * kNormBlock, end_of(last));
    } else if (layer()) {
      sum_values<2, Itself>(
          first, last, sums, KeepingInput{}, [this](int64_t column, int64_t second) -> Streams<3> {
            return {{input_from(column), kept_from(column), kept_from(column + second)}};
          });
    } else {
      sum_values<4, Square>(
          first, last, sums, Input{},
          [this](int64_t column, int64_t) -> Streams<1> { return {{input_from(column)}}; });
    }
  }

  void add_up_squares(int64_t first, int64_t last, float mean, float* sums) const {
    if (last == norm_blocks(call_.columns)) fill_up(mean);
    sum_values<4, Square>(first, last, sums, Deviation{mean},
                          [this](int64_t column, int64_t second) -> Streams<2> {
                            return {{kept_from(column), kept_from(column + second)}};
                          });
  }

  // The kNormSums sums of blocks [first, last), one at least: add_block(column, count, first,
  // second, vl) adds `count` columns.
  template <class AddBlock>
  void sum_blocks(int64_t first_block, int64_t last_block, float* sums, AddBlock add_block) const {
    size_t vl;
    for (int64_t lane = 0; lane < kStepLanes; lane += static_cast<int64_t>(vl)) {
      vl = Format::lanes(kStepLanes - lane);
      Float total;
      int64_t block = first_block;
      do {
        Float first = Format::splat(0.0F, vl);
        Float second = first;
        const int64_t column = block * kNormBlock + first_of<Format>(lane);
        add_block(column, end_of(block + 1) - column, first, second, vl);
        first = Format::add(first, second, vl);
        total = block == first_block ? first : Format::add(total, first, vl);
      } while (++block < last_block);
      Format::store_floats(sums + lane, total, vl);
    }
  }

  // Of values that are zeros after the row's end.
  template <int Steps, class Term, class Values, class Rows>
  void sum_values(int64_t first_block, int64_t last_block, float* sums, Values values,
                  Rows rows) const {
    sum_blocks(first_block, last_block, sums,
               [&](int64_t column, int64_t count, Float& first, Float& second, size_t vl)
                   __attribute__((always_inline)) {
                     const auto lanes = static_cast<int64_t>(vl);
                     for_steps<Steps>(
                         rows(column, second_of<Format>(lanes)), count, width_of<Format>(lanes),
                         [&](const auto& places, auto step) __attribute__((always_inline)) {
                           Float a, b;
                           values.load(places, step, a, b, vl);
                           first = Term::add(first, a, vl);
                           second = Term::add(second, b, vl);
                         });
                   });
  }

  // Of input and residual, whose sum is kept and stored as the residual. False where that has to be
  // done again, see Format::store_quickly.
  template <class Term>
  bool sum_with_residual(int64_t first_block, int64_t last_block, float* sums) const {
    bool right = true;
    sum_blocks(
        first_block, last_block, sums,
        [&](int64_t column, int64_t count, Float& first, Float& second,
            size_t vl) __attribute__((always_inline)) {
          const auto lanes = static_cast<int64_t>(vl);
          const Streams<5> rows = {{input_from(column), residual_from(column), kept_from(column),
                                    kept_from(column + second_of<Format>(lanes)),
                                    residual_from(column)}};
          Float witness = Format::splat(0.0F, vl);
          for_overlapping_steps<3, Float>(
              rows, count, width_of<Format>(lanes),
              [&](const auto& places, auto step, Float& a, Float& b)
                  __attribute__((always_inline)) {
                    Float c, d;
                    Format::load(places.template of<const Element>(0), step, a, b, vl);
                    Format::load(places.template of<const Element>(1), step, c, d, vl);
                    a = Format::add(a, c, vl);
                    b = Format::add(b, d, vl);
                  },
              [&](const auto& places, auto step, Float a, Float b) __attribute__((always_inline)) {
                Format::store_floats(places.template of<float>(2), a, vl);
                Format::store_floats(places.template of<float>(3), b, vl);
                first = Term::add(first, a, vl);
                second = Term::add(second, b, vl);
                Format::store_sum_quickly(places.template of<Element>(4), step, a, b, witness, vl);
              });
          right = Format::finite(witness, vl) && right;
        });
    return right;
  }

  struct ScaledKept {
    template <class Where, class Step>
    SGL_RVV_STEP void load(const Where& places, Step step, Float& a, Float& b, size_t vl) const {
      Kept{}.load(places, step, a, b, vl);
      a = Format::scaled(a, vl);
      b = Format::scaled(b, vl);
    }
  };

  // The residual anew, exactly, from what was kept.
  void store_residual(int64_t begin, int64_t end) const {
    store_steps<false>(
        begin, end, ScaledKept{}, [this](int64_t column, int64_t second) -> Streams<3> {
          return {{kept_from(column), kept_from(column + second), residual_from(column)}};
        });
  }

  // Makes what follows the row in its last step equal to the mean.
  void fill_up(float mean) const {
    const int64_t end = call_.columns;
    const auto vl = static_cast<int64_t>(Format::lanes(kStepLanes));
    const int64_t size = Format::kEvenOdd ? 2 * vl : kStepColumns;
    const int64_t first = end / size * size;
    for (int64_t i = end - first; end > first && i < size; ++i) {
      kept_[first + (Format::kEvenOdd ? i % 2 * vl + i / 2 : i)] = mean;
    }
  }

  // The sum of a row that was shared out, from the sums of its blocks.
  float total(const float* sums) const {
    alignas(64) float all[kNormSums];
    size_t vl;
    for (int64_t lane = 0; lane < kNormSums; lane += static_cast<int64_t>(vl)) {
      vl = Format::lanes(kNormSums - lane);
      Float sum = Format::load_floats(sums + lane, vl);
      for (int64_t block = 1; block < norm_blocks(call_.columns); ++block) {
        sum = Format::add(sum, Format::load_floats(sums + block * kNormSums + lane, vl), vl);
      }
      Format::store_floats(all + lane, sum, vl);
    }
    return sum_tree<kNormSums>(all);
  }

  void finish(int64_t begin, int64_t end, float mean, float squares) const {
    const float factor = 1.0F / std::sqrt(squares / columns() + call_.eps) * Format::kScale;
    switch (call_.kind) {
      case NormKind::kRms:
        return finish_rms<NormKind::kRms>(begin, end, factor);
      case NormKind::kRmsWeight:
        return finish_rms<NormKind::kRmsWeight>(begin, end, factor);
      case NormKind::kRmsOnePlusWeight:
        return finish_rms<NormKind::kRmsOnePlusWeight>(begin, end, factor);
      case NormKind::kRmsGated:
        return finish_rms<NormKind::kRmsGated>(begin, end, factor);
      case NormKind::kLayer:
        finish_layer(begin, end, mean, factor);
    }
  }

  // What computes a step of the output, times Format::kScale, which is in `factor`.

  template <NormKind Kind, class Values>
  struct RmsOutput {
    // Beside the values: weight and gate.
    static constexpr int kMore = Kind == NormKind::kRms ? 0 : Kind == NormKind::kRmsGated ? 2 : 1;
    Values values;
    float factor;

    template <class Where, class Step>
    SGL_RVV_STEP void load(const Where& places, Step step, Float& a, Float& b, size_t vl) const {
      Float c, d;
      values.load(places, step, a, b, vl);
      a = Format::multiply(a, factor, vl);
      b = Format::multiply(b, factor, vl);
      if constexpr (kMore > 0) {
        Format::load(places.template of<const Element>(Values::kRows), step, c, d, vl);
        if constexpr (Kind == NormKind::kRmsOnePlusWeight) {
          c = Format::add(c, 1.0F, vl);
          d = Format::add(d, 1.0F, vl);
        }
        a = Format::multiply(a, c, vl);
        b = Format::multiply(b, d, vl);
      }
      if constexpr (kMore > 1) {
        Format::load(places.template of<const Element>(Values::kRows + 1), step, c, d, vl);
        a = Format::multiply(a, silu<Format>(c, vl), vl);
        b = Format::multiply(b, silu<Format>(d, vl), vl);
      }
    }
  };

  template <bool HasBias>
  struct LayerOutput {
    Deviation values;
    float factor;

    template <class Where, class Step>
    SGL_RVV_STEP void load(const Where& places, Step step, Float& a, Float& b, size_t vl) const {
      Float c, d;
      values.load(places, step, a, b, vl);
      a = Format::multiply(a, factor, vl);
      b = Format::multiply(b, factor, vl);
      Format::load(places.template of<const Element>(2), step, c, d, vl);
      a = Format::multiply(a, c, vl);
      b = Format::multiply(b, d, vl);
      if constexpr (HasBias) {
        Format::load(places.template of<const Element>(3), step, c, d, vl);
        a = Format::add(a, Format::scaled(c, vl), vl);
        b = Format::add(b, Format::scaled(d, vl), vl);
      }
    }
  };

  template <NormKind Kind>
  void finish_rms(int64_t begin, int64_t end, float factor) const {
    if (call_.residual != nullptr) {
      using Output = RmsOutput<Kind, Kept>;
      store_steps<true>(begin, end, Output{{}, factor}, [this](int64_t column, int64_t second) {
        Streams<Output::kMore + 3> rows;
        rows.rows[0] = kept_from(column);
        rows.rows[1] = kept_from(column + second);
        add_operands<Output::kMore>(rows.rows + 2, column);
        return rows;
      });
    } else {
      using Output = RmsOutput<Kind, Input>;
      store_steps<true>(begin, end, Output{{}, factor}, [this](int64_t column, int64_t) {
        Streams<Output::kMore + 2> rows;
        rows.rows[0] = input_from(column);
        add_operands<Output::kMore>(rows.rows + 1, column);
        return rows;
      });
    }
  }

  // Weight and gate, as many as there are, and the output.
  template <int More>
  void add_operands(Stream* rows, int64_t column) const {
    if constexpr (More > 0) rows[0] = weight_from(column);
    if constexpr (More > 1) rows[1] = stream(gate_ + column);
    rows[More] = stream(out_ + column);
  }

  void finish_layer(int64_t begin, int64_t end, float mean, float factor) const {
    if (call_.bias == nullptr) {
      store_steps<true>(begin, end, LayerOutput<false>{{mean}, factor},
                        [this](int64_t column, int64_t second) -> Streams<4> {
                          return {{kept_from(column), kept_from(column + second),
                                   weight_from(column), stream(out_ + column)}};
                        });
    } else {
      store_steps<true>(
          begin, end, LayerOutput<true>{{mean}, factor},
          [this](int64_t column, int64_t second) -> Streams<5> {
            return {{kept_from(column), kept_from(column + second), weight_from(column),
                     stream(static_cast<const Element*>(call_.bias) + column),
                     stream(out_ + column)}};
          });
    }
  }

  // Computes columns [begin, end) and stores them in the last of the rows. Quickly: and once more
  // where they are out of the ordinary.
  template <bool Quickly, class Values, class Rows>
  static void store_steps(int64_t begin, int64_t end, Values values, Rows rows) {
    constexpr int kOut = sizeof(rows(0, 0)) / sizeof(Stream) - 1;
    bool right = true;
    size_t vl;
    for (int64_t lane = 0; lane < kStepLanes; lane += static_cast<int64_t>(vl)) {
      vl = Format::lanes(kStepLanes - lane);
      const auto lanes = static_cast<int64_t>(vl);
      const int64_t column = begin + first_of<Format>(lane);
      Float witness = Format::splat(0.0F, vl);
      for_overlapping_steps<1, Float>(
          rows(column, second_of<Format>(lanes)), end - column, width_of<Format>(lanes),
          [&](const auto& places, auto step, Float& a, Float& b)
              __attribute__((always_inline)) { values.load(places, step, a, b, vl); },
          [&](const auto& places, auto step, Float a, Float b) __attribute__((always_inline)) {
            auto* const to = places.template of<Element>(kOut);
            if constexpr (Quickly) {
              Format::store_quickly(to, step, a, b, witness, vl);
            } else {
              Format::store(to, step, a, b, vl);
            }
          });
      right = Format::finite(witness, vl) && right;
    }
    if (Quickly && !right) store_steps<false>(begin, end, values, rows);
  }

  const Norm& call_;
  const Element* input_;
  Element* residual_;
  const Element* gate_;
  Element* out_;
  float* sums_;
  float* deviations_;
  float* kept_;
};

}  // namespace sgl_rvv
