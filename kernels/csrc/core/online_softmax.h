// Softmax over scores that come in blocks. A query's state is the maximum m of the scores so far
// and the sum l of exp(score - m); a new block with a higher maximum scales what was accumulated by
// exp(m_old - m_new). Two partial results (o_i, lse_i = m_i + log l_i) merge with the weights
// exp(lse_i - max lse).
//
// A query that has seen nothing, or scores of -infinity only, has m = -infinity and l = 0;
// differences are then taken to 0 instead of to m, since -infinity minus itself is NaN.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/exp.h"

namespace sgl_rvv {

constexpr float kNothingSeen = -std::numeric_limits<float>::infinity();

// What exponentials are taken relative to.
[[nodiscard]] inline float softmax_reference(float maximum) {
  return maximum == kNothingSeen ? 0.0F : maximum;
}

// c * tanh(s / c), from t = exp(-2 |s / c|): (1 - t) / (1 + t) is tanh to a few units of 2^-24.
[[nodiscard]] inline float capped(float score, float cap) {
  const float t = exp_nonpositive(-2.0F * std::fabs(score) / cap);
  return std::copysign(cap * ((1.0F - t) / (1.0F + t)), score);
}

// 1 / l, or 0 where nothing was seen. NaN stays NaN.
[[nodiscard]] inline float softmax_normaliser(float sum) {
  return sum == 0.0F ? 0.0F : 1.0F / sum;
}

[[nodiscard]] inline float log_sum_exp(float maximum, float sum) {
  return sum == 0.0F ? kNothingSeen : maximum + std::log(sum);
}

// The weights of `count` partial results with these logarithms, normalised; all 0 where all are
// empty.
inline void merge_weights(const float* lse, int64_t stride, int64_t count, float* weights) {
  float highest = kNothingSeen;
  for (int64_t i = 0; i < count; ++i) {
    if (lse[i * stride] > highest) highest = lse[i * stride];
  }
  const float reference = softmax_reference(highest);
  float sum = 0.0F;
  for (int64_t i = 0; i < count; ++i) {
    weights[i] = exp_nonpositive(lse[i * stride] - reference);
    sum += weights[i];
  }
  const float normaliser = softmax_normaliser(sum);
  for (int64_t i = 0; i < count; ++i) weights[i] *= normaliser;
}

}  // namespace sgl_rvv
