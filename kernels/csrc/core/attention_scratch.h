// How a thread's scratch is laid out: one function for each operation, which also says how much it
// is.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "core/attention.h"

namespace sgl_rvv {

// Queries of one block: FP32, [rows, head] and [rows, head_v], and the state of their softmax.
struct QueryBlock {
  int64_t rows;
  float* query;   // scaled
  float* output;  // not yet normalised
  float* maximum;
  float* lanes;       // [rows, columns / 4]: sums of exponentials, not yet added up
  float* sum;         // added up
  float* reference;   // of a block of keys: first the highest score, then what is subtracted
  float* factor;      // exp(maximum before - maximum after)
  int64_t* position;  // of each row behind the first
};

// Keys and values of one block, converted: keys [tiles][head][columns] (transposed), values
// [tokens, head_v] (extend); scores [rows][pitch].
struct KvBlock {
  int64_t columns;  // of one tile
  int64_t pitch;    // of a row of scores: columns times the tiles of a block
  float* keys;
  float* values;
  float* scores;
  int64_t* seen;      // of each row of scores: keys of the block that it sees
  const void** rows;  // [pitch + kRowsAhead]: where the value rows are (decode)
  uint16_t* staging;  // [columns][head]: rows that are not aligned as the kernel needs them
};

// Behind the addresses of a block's value rows the last one is repeated, since kernels load ahead.
constexpr int64_t kRowsAhead = 3;

class ScratchCursor {
 public:
  explicit ScratchCursor(float* base) : base_(base) {}

  // The next `count` floats, beginning at a multiple of 64 bytes.
  float* take(int64_t count) {
    float* here = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (count + 15) / 16 * 16;
    return here;
  }
  [[nodiscard]] int64_t used() const { return used_; }

  QueryBlock take_queries(int64_t rows, const AttentionSizes& sizes, int64_t columns) {
    QueryBlock block{};
    block.rows = rows;
    block.query = take(rows * sizes.head);
    block.output = take(rows * sizes.head_v);
    block.maximum = take(rows);
    block.lanes = take(rows * columns / 4);
    block.sum = take(rows);
    block.reference = take(rows);
    block.factor = take(rows);
    block.position = reinterpret_cast<int64_t*>(take(2 * rows));
    return block;
  }

 private:
  float* base_;
  int64_t used_ = 0;
};

struct DecodeScratch {
  // Keys of one block, in tiles: long blocks make the softmax's reductions rare, and a tile's keys
  // are used at once, so that they need only one tile's room.
  static constexpr int64_t kTiles = 8;

  QueryBlock queries;
  KvBlock block;
  float* weights;  // [splits], to merge
  int64_t floats;

  static DecodeScratch lay_out(float* base, const AttentionSizes& sizes, int64_t splits,
                               int64_t columns) {
    ScratchCursor cursor(base);
    DecodeScratch scratch{};
    scratch.queries = cursor.take_queries(sizes.group(), sizes, columns);
    scratch.block = {
        columns,
        columns * kTiles,
        nullptr,
        nullptr,
        cursor.take(sizes.group() * columns * kTiles),
        reinterpret_cast<int64_t*>(cursor.take(2 * sizes.group())),
        reinterpret_cast<const void**>(cursor.take(2 * (columns * kTiles + kRowsAhead))),
        reinterpret_cast<uint16_t*>(cursor.take(columns * sizes.head / 2))};
    scratch.weights = cursor.take(splits);
    scratch.floats = cursor.used();
    return scratch;
  }
};

struct ExtendScratch {
  // Queries whose scores are alive at once: five tiles of six rows, about 4 KB at VLEN 256.
  static constexpr int64_t kScoreRows = 30;

  QueryBlock queries;
  KvBlock block;
  int64_t floats;

  static ExtendScratch lay_out(float* base, const AttentionSizes& sizes, int64_t largest_unit,
                               int64_t columns) {
    ScratchCursor cursor(base);
    ExtendScratch scratch{};
    scratch.queries = cursor.take_queries(largest_unit * sizes.group(), sizes, columns);
    scratch.block = {columns,
                     columns,
                     cursor.take(columns * sizes.head),
                     cursor.take(columns * sizes.head_v),
                     cursor.take(kScoreRows * columns),
                     reinterpret_cast<int64_t*>(cursor.take(2 * kScoreRows)),
                     nullptr,
                     reinterpret_cast<uint16_t*>(cursor.take(columns * sizes.head / 2))};
    scratch.floats = cursor.used();
    return scratch;
  }
};

// A kernel that was given too little would write over other threads' memory: better no process.
template <class Layout>
inline void check(const Layout& layout, const Scratch& given) {
  if (given.floats < layout.floats) std::abort();
}

}  // namespace sgl_rvv
