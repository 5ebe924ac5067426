// The two attention algorithms over tiles: what is converted, multiplied and reduced in which
// order. `Tiles` says how, for one element type and instruction set (attention_tiles_*.h):
//
//   columns()                            keys of one tile
//   keys(rows, count, head, staging, out)    -> out[head][columns()]: transposed FP32
//   values(rows, count, head_v, out)         -> out[count][head_v]: FP32. True: none is NaN or
//                                            infinite
//   query(row, head, scale, out)             -> out[head] = scale * row
//   query_column(row, head, scale, pitch, out)   the same, but out[i * pitch]
//   scores(query, m, head, rows, count, staging, c, ldc)  c[m, count] = query[head, m]^T rows^T;
//                                        m numbers behind the query may be read, whatever they are
//   product(a, lda, m, k, b, ldb, n, c, ldc)             c[m, n] = a[m, k] b[k, n]
//   product_onto(factors, a, lda, ...)                   c[i, :] = factors[i] c[i, :] + (a b)[i, :]
//   locate(rows, count, out)             out[count]: where the rows begin; the last one kRowsAhead
//                                        times more
//   rows_onto(factors, a, lda, m, k, rows, n, c, ldc)    the same, b being k 16-bit rows of n
//   cap(scores, count, cap)              score -> cap * tanh(score / cap)
//   maxima(scores, pitch, rows, counts, out)  out[row]: its highest score, NaN aside; -infinity
//                                        where it has none. True: no score is NaN or infinite. May
//                                        write behind the scores, up to a multiple of columns()
//   exponentiate(scores, pitch, rows, counts, reference, factor, sums, careful)
//                                        score -> exp(score - reference), 0 behind them up to a
//                                        multiple of columns(); sums[row][columns() / 4]
//                                        -> factor sums + sums of the new ones. Right after
//                                        maxima(); careful where that was not true
//   totals(sums, rows, out)              out[row]: its sums added up
//   renew(maximum, reference, factor, rows)  maximum -> max(maximum, reference), then reference
//                                        -> what to subtract from scores, factor -> exp(maximum
//                                        before - that), as online_softmax.h has it
//   normalisers(sum, out, rows)          out[row] = softmax_normaliser(sum[row])
//   normalised(row, count, by, out)      out[count] = row * by, FP32
//   store(row, count, by, out)           out[count] = round(row * by)
//
// Tiles of an INT8 cache (attention_int8_tiles_*.h) take its rows for these, and beside them have
//
//   weigh(rows, count, scores, pitch, m)     c[m, count] *= the rows' scales
//
// since rows_onto() there multiplies by codes; keys(), values() and scores() apply scales.
//
// Extending, a tile of keys is converted once for all queries of a unit; decoding, keys are
// converted where up to kQueryTile queries of a group multiply them. Products accumulate in
// vectors; one reduction for each query and block of keys.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/attention.h"
#include "core/attention_scratch.h"
#include "core/online_softmax.h"

namespace sgl_rvv {

// Rows of queries that one product computes at once: their accumulators fill the vector registers.
constexpr int64_t kQueryTile = 6;

// Of the keys of a block, those that a query sees: those up to its own position.
struct Visibility {
  int64_t first;            // keys that a row at position 0 sees; may be negative
  int64_t count;            // keys of the block
  const int64_t* position;  // of each row; never falls

  [[nodiscard]] int64_t of(int64_t row) const {
    return std::clamp<int64_t>(first + position[row], 0, count);
  }
};

template <class Tiles>
class AttentionBlocks {
 public:
  template <class Heads>
  static void decode(const DecodeAttentionOf<Heads>& call, DecodeStage stage, int64_t begin,
                     int64_t end, const Scratch& scratch) {
    const DecodeScratch layout =
        DecodeScratch::lay_out(scratch.data, call.sizes, call.splits, Tiles::columns());
    check(layout, scratch);
    for (int64_t unit = begin; unit < end; ++unit) {
      if (stage == DecodeStage::kAttend) {
        attend(call, unit, layout);
      } else {
        merge(call, unit, layout);
      }
    }
  }

  // `Call`: ExtendAttention or ExtendAttentionInt8.
  template <class Call>
  static void extend(const Call& call, int64_t begin, int64_t end, const Scratch& scratch) {
    const ExtendScratch layout =
        ExtendScratch::lay_out(scratch.data, call.sizes, call.largest_unit, Tiles::columns());
    check(layout, scratch);
    for (int64_t unit = begin; unit < end; ++unit) extend_unit(call, call.units[unit], layout);
  }

 private:
  static void start(const QueryBlock& queries, const AttentionSizes& sizes) {
    std::fill_n(queries.output, queries.rows * sizes.head_v, 0.0F);
    std::fill_n(queries.maximum, queries.rows, kNothingSeen);
    std::fill_n(queries.lanes, queries.rows * (Tiles::columns() / 4), 0.0F);
    std::fill_n(queries.position, queries.rows, int64_t{0});
  }

  // Scores of rows [first, first + rows) with the keys of one tile.
  static void score(const QueryBlock& queries, const KvBlock& block, int64_t head, int64_t first,
                    int64_t rows, const Visibility& visible) {
    for (int64_t row = 0; row < rows; row += kQueryTile) {
      const int64_t m = std::min(kQueryTile, rows - row);
      const int64_t n = visible.of(first + row + m - 1);
      Tiles::product(queries.query + (first + row) * head, head, m, head, block.keys, block.columns,
                     n, block.scores + row * block.pitch, block.pitch);
    }
  }

  // Scores to exponentials, and the state of each row with them.
  static void soften(const QueryBlock& queries, const KvBlock& block, float cap, int64_t first,
                     int64_t rows, const Visibility& visible) {
    for (int64_t row = 0; row < rows; ++row) block.seen[row] = visible.of(first + row);
    if (cap > 0.0F) {
      for (int64_t row = 0; row < rows; ++row) {
        Tiles::cap(block.scores + row * block.pitch, block.seen[row], cap);
      }
    }
    const bool numbers =
        Tiles::maxima(block.scores, block.pitch, rows, block.seen, queries.reference + first);
    Tiles::renew(queries.maximum + first, queries.reference + first, queries.factor + first, rows);
    Tiles::exponentiate(block.scores, block.pitch, rows, block.seen, queries.reference + first,
                        queries.factor + first, queries.lanes + first * (block.columns / 4),
                        !numbers);
  }

  // Adds exponentials times values; exponentials of keys that a row does not see are 0. A row may
  // multiply such a value by 0 only where all `values` are `numbers`: 0 times NaN is not 0.
  static void weigh(const QueryBlock& queries, const KvBlock& block, int64_t head_v, int64_t first,
                    int64_t rows, const Visibility& visible, bool numbers) {
    for (int64_t row = 0; row < rows; row += kQueryTile) {
      const int64_t m = std::min(kQueryTile, rows - row);
      const float* weights = block.scores + row * block.pitch;
      float* output = queries.output + (first + row) * head_v;
      const int64_t shared = visible.of(first + row + (numbers ? m - 1 : 0));
      Tiles::product_onto(queries.factor + first + row, weights, block.pitch, m, shared,
                          block.values, head_v, head_v, output, head_v);
      for (int64_t i = 0; i < m && !numbers;) {
        const int64_t seen = visible.of(first + row + i);
        int64_t end = i + 1;
        while (end < m && visible.of(first + row + end) == seen) ++end;
        if (seen > shared) {
          Tiles::product_onto(nullptr, weights + i * block.pitch + shared, block.pitch, end - i,
                              seen - shared, block.values + shared * head_v, head_v, head_v,
                              output + i * head_v, head_v);
        }
        i = end;
      }
    }
  }

  // Calls `of(first, m)` for the rows of a group in tiles of about the same height.
  template <class Of>
  static void for_tiles(int64_t rows, Of of) {
    if (rows <= kQueryTile) {  // most groups, without the divisions
      of(0, rows);
      return;
    }
    const int64_t tiles = (rows + kQueryTile - 1) / kQueryTile;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t first = rows * tile / tiles;
      of(first, rows * (tile + 1) / tiles - first);
    }
  }

  template <class Heads>
  static void attend(const DecodeAttentionOf<Heads>& call, int64_t unit,
                     const DecodeScratch& scratch) {
    const AttentionSizes& sizes = call.sizes;
    const int64_t split = unit % call.splits;
    const int64_t kv_head = unit / call.splits % sizes.kv_heads;
    const int64_t sequence = unit / call.splits / sizes.kv_heads;
    const int64_t* slots = call.slots + call.slots_begin[sequence];
    const int64_t length = call.slots_begin[sequence + 1] - call.slots_begin[sequence];
    const int64_t share = split_tokens(length, call.splits);
    const int64_t begin = std::min(length, split * share);
    const int64_t end = std::min(length, begin + share);
    const int64_t first_head = kv_head * sizes.group();

    const QueryBlock& queries = scratch.queries;
    start(queries, sizes);
    if (begin < end) {
      for_tiles(queries.rows, [&](int64_t first, int64_t m) {
        for (int64_t row = 0; row < m; ++row) {
          Tiles::query_column(call.query.data + sequence * call.query.token_stride +
                                  (first_head + first + row) * call.query.head_stride,
                              sizes.head, sizes.scale, m, queries.query + first * sizes.head + row);
        }
      });
    }
    const auto keys = call.keys.of(kv_head, slots);
    const auto values = call.values.of(kv_head, slots);
    for (int64_t token = begin; token < end; token += scratch.block.pitch) {
      decode_block(sizes, scratch, keys.from(token), values.from(token),
                   std::min(scratch.block.pitch, end - token));
    }
    Tiles::totals(queries.lanes, queries.rows, queries.sum);
    for (int64_t row = 0; row < sizes.group(); ++row) {
      float* partial = call.partials + sequence * call.partial_sequence_stride +
                       (first_head + row) * call.partial_head_stride +
                       split * call.partial_split_stride;
      partial[sizes.head_v] = log_sum_exp(queries.maximum[row], queries.sum[row]);
      if (begin < end) {
        Tiles::normalised(queries.output + row * sizes.head_v, sizes.head_v,
                          softmax_normaliser(queries.sum[row]), partial);
      }
    }
  }

  template <class Rows>
  static void decode_block(const AttentionSizes& sizes, const DecodeScratch& scratch,
                           const Rows& keys, const Rows& values, int64_t count) {
    const QueryBlock& queries = scratch.queries;
    const KvBlock& block = scratch.block;
    for (int64_t tile = 0; tile < count; tile += block.columns) {
      const int64_t here = std::min(block.columns, count - tile);
      for_tiles(queries.rows, [&](int64_t first, int64_t m) {
        Tiles::scores(queries.query + first * sizes.head, m, sizes.head, keys.from(tile), here,
                      block.staging, block.scores + first * block.pitch + tile, block.pitch);
      });
    }
    soften(queries, block, sizes.cap, 0, queries.rows, {count, count, queries.position});
    if constexpr (std::is_same_v<Rows, Int8Rows>) {
      Tiles::weigh(values, count, block.scores, block.pitch, queries.rows);
    }
    // A group has few queries for each value: converting values on the way costs less than storing
    // them as FP32.
    Tiles::locate(values, count, block.rows);
    Tiles::rows_onto(queries.factor, block.scores, block.pitch, queries.rows, count, block.rows,
                     sizes.head_v, queries.output, sizes.head_v);
  }

  template <class Heads>
  static void merge(const DecodeAttentionOf<Heads>& call, int64_t unit,
                    const DecodeScratch& scratch) {
    const AttentionSizes& sizes = call.sizes;
    const int64_t head = unit % sizes.heads;
    const int64_t sequence = unit / sizes.heads;
    float* partials =
        call.partials + sequence * call.partial_sequence_stride + head * call.partial_head_stride;
    const int64_t stride = call.partial_split_stride;
    const int64_t length = call.slots_begin[sequence + 1] - call.slots_begin[sequence];
    const int64_t share = split_tokens(length, call.splits);
    const int64_t used = (length + share - 1) / share;
    for (int64_t split = used; split < call.max_splits; ++split) {
      partials[split * stride + sizes.head_v] = kNothingSeen;
    }
    if (used == 1) {  // its weight is 1
      Tiles::store(
          partials, sizes.head_v, 1.0F,
          call.output.data + sequence * call.output.token_stride + head * call.output.head_stride);
      return;
    }
    merge_weights(partials + sizes.head_v, stride, used, scratch.weights);
    float* row = scratch.queries.output;
    Tiles::product(scratch.weights, used, 1, used, partials, stride, sizes.head_v, row,
                   sizes.head_v);
    Tiles::store(
        row, sizes.head_v, 1.0F,
        call.output.data + sequence * call.output.token_stride + head * call.output.head_stride);
  }

  // Converts keys and values of tokens [token, token + count) of a sequence; whether no value is
  // NaN or infinite. One row of tiles over prefix and new tokens: a tile may have some of both.
  static bool convert(const ExtendAttention& call, const ExtendUnit& unit, int64_t token,
                      int64_t count, const KvBlock& block) {
    const AttentionSizes& sizes = call.sizes;
    const ExtendSequence& sequence = call.sequences[unit.sequence];
    const int64_t old = std::clamp<int64_t>(sequence.prefix - token, 0, count);
    bool numbers = true;
    if (old > 0) {
      const KvRows keys = call.keys.of(unit.kv_head, sequence.slots);
      const KvRows values = call.values.of(unit.kv_head, sequence.slots);
      Tiles::keys(keys.from(token), old, sizes.head, block.staging, block.keys);
      numbers = Tiles::values(values.from(token), old, sizes.head_v, block.values);
    }
    if (old < count) {
      const int64_t from = sequence.first + token + old - sequence.prefix;
      const KvRows keys = call.new_keys.of(unit.kv_head, nullptr);
      const KvRows values = call.new_values.of(unit.kv_head, nullptr);
      Tiles::keys(keys.from(from), count - old, sizes.head, block.staging, block.keys + old);
      const bool rest = Tiles::values(values.from(from), count - old, sizes.head_v,
                                      block.values + old * sizes.head_v);
      numbers = numbers && rest;
    }
    return numbers;
  }

  static bool convert(const ExtendAttentionInt8& call, const ExtendUnit& unit, int64_t token,
                      int64_t count, const KvBlock& block) {
    const int64_t* slots = call.sequences[unit.sequence].slots;
    Tiles::keys(call.keys.of(unit.kv_head, slots).from(token), count, call.sizes.head,
                block.staging, block.keys);
    return Tiles::values(call.values.of(unit.kv_head, slots).from(token), count, call.sizes.head_v,
                         block.values);
  }

  template <class Call>
  static void extend_unit(const Call& call, const ExtendUnit& unit, const ExtendScratch& scratch) {
    const AttentionSizes& sizes = call.sizes;
    const ExtendSequence& sequence = call.sequences[unit.sequence];
    const int64_t group = sizes.group();
    const int64_t first_token = sequence.first + unit.position;
    const int64_t first_head = unit.kv_head * group;
    QueryBlock queries = scratch.queries;
    queries.rows = unit.positions * group;
    start(queries, sizes);
    int64_t row = 0;
    for (int64_t position = 0; position < unit.positions; ++position) {
      const uint16_t* from = call.query.data + (first_token + position) * call.query.token_stride +
                             first_head * call.query.head_stride;
      for (int64_t i = 0; i < group; ++i, ++row, from += call.query.head_stride) {
        Tiles::query(from, sizes.head, sizes.scale, queries.query + row * sizes.head);
        queries.position[row] = position;
      }
    }

    const KvBlock& block = scratch.block;
    const int64_t seen = sequence.prefix + unit.position + unit.positions;
    for (int64_t token = 0; token < seen; token += block.columns) {
      const int64_t count = std::min(block.columns, seen - token);
      const bool numbers = convert(call, unit, token, count, block);
      const Visibility visible = {sequence.prefix + unit.position + 1 - token, count,
                                  queries.position};
      // Rows at earlier positions see nothing of this block.
      const int64_t blind = group * std::max<int64_t>(0, 1 - visible.first);
      for (int64_t first = blind; first < queries.rows; first += ExtendScratch::kScoreRows) {
        const int64_t rows = std::min(ExtendScratch::kScoreRows, queries.rows - first);
        score(queries, block, sizes.head, first, rows, visible);
        soften(queries, block, sizes.cap, first, rows, visible);
        weigh(queries, block, sizes.head_v, first, rows, visible, numbers);
      }
    }

    Tiles::totals(queries.lanes, queries.rows, queries.sum);
    Tiles::normalisers(queries.sum, queries.factor, queries.rows);
    row = 0;
    for (int64_t position = 0; position < unit.positions; ++position) {
      uint16_t* to = call.output.data + (first_token + position) * call.output.token_stride +
                     first_head * call.output.head_stride;
      for (int64_t i = 0; i < group; ++i, ++row, to += call.output.head_stride) {
        Tiles::store(queries.output + row * sizes.head_v, sizes.head_v, queries.factor[row], to);
      }
    }
  }
};

}  // namespace sgl_rvv
