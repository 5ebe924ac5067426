// Tiles of an INT8 cache (attention_blocks.h) in plain C++.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/attention_tiles_portable.h"

namespace sgl_rvv {
namespace {

template <class Element>
struct PortableInt8Tiles : PortableTiles<Element> {
  static void keys(const Int8Rows& rows, int64_t count, int64_t head, uint16_t* /*staging*/,
                   float* out) {
    for (int64_t token = 0; token < count; ++token) {
      const int8_t* row = rows.codes.row(token);
      const float scale = rows.scale_of(token);
      for (int64_t i = 0; i < head; ++i) {
        out[i * kColumns + token] = static_cast<float>(row[i]) * scale;
      }
    }
  }

  static bool values(const Int8Rows& rows, int64_t count, int64_t head_v, float* out) {
    for (int64_t token = 0; token < count; ++token) {
      const int8_t* row = rows.codes.row(token);
      const float scale = rows.scale_of(token);
      for (int64_t i = 0; i < head_v; ++i) {
        out[token * head_v + i] = static_cast<float>(row[i]) * scale;
      }
    }
    return true;  // codes times a finite scale
  }

  static void scores(const float* query, int64_t m, int64_t head, const Int8Rows& rows,
                     int64_t count, uint16_t* /*staging*/, float* c, int64_t ldc) {
    for (int64_t token = 0; token < count; ++token) {
      const int8_t* key = rows.codes.row(token);
      const float scale = rows.scale_of(token);
      float sums[kQueryTile] = {};
      for (int64_t i = 0; i < head; ++i) {
        const auto right = static_cast<float>(key[i]);
        for (int64_t row = 0; row < m; ++row) sums[row] += query[i * m + row] * right;
      }
      for (int64_t row = 0; row < m; ++row) c[row * ldc + token] = sums[row] * scale;
    }
  }

  static void weigh(const Int8Rows& rows, int64_t count, float* scores, int64_t pitch, int64_t m) {
    for (int64_t token = 0; token < count; ++token) {
      const float scale = rows.scale_of(token);
      for (int64_t row = 0; row < m; ++row) scores[row * pitch + token] *= scale;
    }
  }

  static void locate(const Int8Rows& rows, int64_t count, const void** out) {
    for (int64_t token = 0; token < count; ++token) out[token] = rows.codes.row(token);
    std::fill_n(out + count, kRowsAhead, out[count - 1]);
  }

  static void rows_onto(const float* factors, const float* a, int64_t lda, int64_t m, int64_t k,
                        const void* const* rows, int64_t n, float* c, int64_t ldc) {
    for (int64_t row = 0; row < m; ++row) {
      float* to = c + row * ldc;
      for (int64_t i = 0; i < n; ++i) to[i] *= factors[row];
      for (int64_t token = 0; token < k; ++token) {
        const float left = a[row * lda + token];
        const auto* codes = static_cast<const int8_t*>(rows[token]);
        for (int64_t i = 0; i < n; ++i) to[i] += left * static_cast<float>(codes[i]);
      }
    }
  }
};

}  // namespace
}  // namespace sgl_rvv
