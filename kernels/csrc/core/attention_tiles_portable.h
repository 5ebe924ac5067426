// The arithmetic of attention on tiles (attention_blocks.h) in plain C++: loops over fixed numbers
// of columns that the compiler may keep in vector registers. Compiled with -ffp-contract=off, so
// that every architecture gives the same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/attention_blocks.h"
#include "core/bf16.h"
#include "core/exp.h"
#include "core/fp16.h"

namespace sgl_rvv {
namespace {

constexpr int64_t kColumns = 32;

struct Bf16 {
  static float load(uint16_t bits) { return bf16_to_float(bits); }
  static uint16_t round(float value) { return float_to_bf16(value); }
};

struct Fp16 {
  static float load(uint16_t bits) { return fp16_to_float(bits); }
  static uint16_t round(float value) { return float_to_fp16(value); }
};

template <class Element>
struct PortableTiles {
  static int64_t columns() { return kColumns; }

  static void keys(const KvRows& rows, int64_t count, int64_t head, uint16_t* /*staging*/,
                   float* out) {
    for (int64_t token = 0; token < count; ++token) {
      const uint16_t* row = rows.row(token);
      for (int64_t i = 0; i < head; ++i) out[i * kColumns + token] = Element::load(row[i]);
    }
  }

  static bool values(const KvRows& rows, int64_t count, int64_t head_v, float* out) {
    float check = 0.0F;  // 0 times anything but a number is NaN
    for (int64_t token = 0; token < count; ++token) {
      const uint16_t* row = rows.row(token);
      for (int64_t i = 0; i < head_v; ++i) {
        out[token * head_v + i] = Element::load(row[i]);
        check += 0.0F * out[token * head_v + i];
      }
    }
    return check == 0.0F;
  }

  static void query(const uint16_t* row, int64_t head, float scale, float* out) {
    for (int64_t i = 0; i < head; ++i) out[i] = scale * Element::load(row[i]);
  }

  static void query_column(const uint16_t* row, int64_t head, float scale, int64_t pitch,
                           float* out) {
    for (int64_t i = 0; i < head; ++i) out[i * pitch] = scale * Element::load(row[i]);
  }

  static void scores(const float* query, int64_t m, int64_t head, const KvRows& rows, int64_t count,
                     uint16_t* /*staging*/, float* c, int64_t ldc) {
    for (int64_t token = 0; token < count; ++token) {
      const uint16_t* key = rows.row(token);
      float sums[kQueryTile] = {};
      for (int64_t i = 0; i < head; ++i) {
        const float right = Element::load(key[i]);
        for (int64_t row = 0; row < m; ++row) sums[row] += query[i * m + row] * right;
      }
      for (int64_t row = 0; row < m; ++row) c[row * ldc + token] = sums[row];
    }
  }

  static void product(const float* a, int64_t lda, int64_t m, int64_t k, const float* b,
                      int64_t ldb, int64_t n, float* c, int64_t ldc) {
    for (int64_t row = 0; row < m; ++row) std::fill_n(c + row * ldc, n, 0.0F);
    product_onto(nullptr, a, lda, m, k, b, ldb, n, c, ldc);
  }

  static void product_onto(const float* factors, const float* a, int64_t lda, int64_t m, int64_t k,
                           const float* b, int64_t ldb, int64_t n, float* c, int64_t ldc) {
    for (int64_t row = 0; row < m; ++row) {
      const float factor = factors == nullptr ? 1.0F : factors[row];
      for (int64_t column = 0; column < n; column += kColumns) {
        const int64_t here = std::min(kColumns, n - column);
        float* to = c + row * ldc + column;
        float sums[kColumns];
        for (int64_t i = 0; i < here; ++i) sums[i] = factor * to[i];
        const float* from = b + column;
        for (int64_t i = 0; i < k; ++i, from += ldb) {
          const float left = a[row * lda + i];
          if (here == kColumns) {
            for (int64_t j = 0; j < kColumns; ++j) sums[j] += left * from[j];
          } else {
            for (int64_t j = 0; j < here; ++j) sums[j] += left * from[j];
          }
        }
        std::copy_n(sums, here, to);
      }
    }
  }

  static void locate(const KvRows& rows, int64_t count, const void** out) {
    for (int64_t token = 0; token < count; ++token) out[token] = rows.row(token);
    std::fill_n(out + count, kRowsAhead, out[count - 1]);
  }

  static void rows_onto(const float* factors, const float* a, int64_t lda, int64_t m, int64_t k,
                        const void* const* rows, int64_t n, float* c, int64_t ldc) {
    for (int64_t row = 0; row < m; ++row) {
      float* to = c + row * ldc;
      for (int64_t i = 0; i < n; ++i) to[i] *= factors[row];
      for (int64_t token = 0; token < k; ++token) {
        const float left = a[row * lda + token];
        const auto* row_of_token = static_cast<const uint16_t*>(rows[token]);
        for (int64_t i = 0; i < n; ++i) to[i] += left * Element::load(row_of_token[i]);
      }
    }
  }

  static void cap(float* scores, int64_t count, float cap) {
    for (int64_t i = 0; i < count; ++i) scores[i] = capped(scores[i], cap);
  }

  static bool maxima(float* scores, int64_t pitch, int64_t rows, const int64_t* counts,
                     float* out) {
    for (int64_t row = 0; row < rows; ++row, scores += pitch) {
      float highest = kNothingSeen;
      for (int64_t i = 0; i < counts[row]; ++i) {
        highest = scores[i] > highest ? scores[i] : highest;
      }
      out[row] = highest;
    }
    return false;  // not looked at
  }

  static void exponentiate(float* scores, int64_t pitch, int64_t rows, const int64_t* counts,
                           const float* reference, const float* factor, float* sums,
                           bool /*careful*/) {
    for (int64_t row = 0; row < rows; ++row, scores += pitch, sums += kColumns / 4) {
      sums[0] *= factor[row];
      for (int64_t i = 0; i < counts[row]; ++i) {
        scores[i] = exp_nonpositive(scores[i] - reference[row]);
        sums[0] += scores[i];
      }
      const int64_t padded = (counts[row] + kColumns - 1) / kColumns * kColumns;
      std::fill(scores + counts[row], scores + padded, 0.0F);
    }
  }

  static void totals(const float* sums, int64_t rows, float* out) {
    for (int64_t row = 0; row < rows; ++row) out[row] = sums[row * (kColumns / 4)];
  }

  static void renew(float* maximum, float* reference, float* factor, int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) {
      const float before = maximum[row];
      maximum[row] = std::max(before, reference[row]);
      reference[row] = softmax_reference(maximum[row]);
      factor[row] = exp_nonpositive(before - reference[row]);
    }
  }

  static void normalisers(const float* sum, float* out, int64_t rows) {
    for (int64_t row = 0; row < rows; ++row) out[row] = softmax_normaliser(sum[row]);
  }

  static void normalised(const float* row, int64_t count, float by, float* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = row[i] * by;
  }

  static void store(const float* row, int64_t count, float by, uint16_t* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = Element::round(row[i] * by);
  }
};

}  // namespace
}  // namespace sgl_rvv
