// Every kernel that puts rows into an INT8 cache, to the last bit, in every rounding mode.

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <string>
#include <vector>

#include "core/kv_store.h"
#include "harness.h"

namespace sgl_rvv::tests {

void test_kv_store();

namespace {

constexpr int kModes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
constexpr int8_t kUntouched = 55;

struct Stored {
  std::vector<int8_t> codes;   // [slots][kv_heads][width + pad] + pad
  std::vector<float> scales;   // [slots][kv_heads + 1]
  std::vector<float> largest;  // [kv_heads][tokens]
};

bool operator==(const Stored& a, const Stored& b) {
  return a.codes == b.codes && a.scales == b.scales && a.largest == b.largest;
}

// Rows [tokens][kv_heads][width] with `pad` elements behind every row.
struct Problem {
  const Format& format;
  int64_t tokens, kv_heads, width, pad;
  float scale;  // 0: dynamic
  std::vector<int64_t> slots;
  int64_t cache_slots;
  std::vector<uint16_t> rows;

  Problem(const Format& format_, int64_t tokens_, int64_t kv_heads_, int64_t width_, int64_t pad_,
          float scale_, uint64_t seed)
      : format(format_),
        tokens(tokens_),
        kv_heads(kv_heads_),
        width(width_),
        pad(pad_),
        scale(scale_),
        cache_slots(2 * tokens_ + 1),
        rows(static_cast<size_t>(tokens_ * kv_heads_ * (width_ + pad_)), format_.nan) {
    Random random(seed);
    for (int64_t token = 0; token < tokens; ++token) {
      slots.push_back((5 * token + 3) % cache_slots);
      for (int64_t head = 0; head < kv_heads; ++head) {
        for (int64_t i = 0; i < width; ++i) at(token, head, i) = format.round(random.value());
      }
    }
  }
  [[nodiscard]] uint16_t& at(int64_t token, int64_t head, int64_t i) {
    return rows[static_cast<size_t>((token * kv_heads + head) * (width + pad) + i)];
  }
  [[nodiscard]] double value(int64_t token, int64_t head, int64_t i) const {
    return format.value(rows[static_cast<size_t>((token * kv_heads + head) * (width + pad) + i)]);
  }
  [[nodiscard]] int64_t slot_stride() const { return kv_heads * (width + pad) + pad; }
  [[nodiscard]] Stored untouched() const {
    return {std::vector<int8_t>(static_cast<size_t>(cache_slots * slot_stride()), kUntouched),
            std::vector<float>(static_cast<size_t>(cache_slots * (kv_heads + 1)), -1.0F),
            std::vector<float>(static_cast<size_t>(kv_heads * tokens), -1.0F)};
  }
};

// What must come out. A product of two FP32 is exact in float64, and so rounded once.
Stored expected(const Problem& problem) {
  Stored stored = problem.untouched();
  for (int64_t token = 0; token < problem.tokens; ++token) {
    for (int64_t head = 0; head < problem.kv_heads; ++head) {
      double largest = 0.0;
      for (int64_t i = 0; i < problem.width; ++i) {
        largest = std::max(largest, std::fabs(problem.value(token, head, i)));
      }
      stored.largest[static_cast<size_t>(head * problem.tokens + token)] =
          static_cast<float>(largest);
      float scale = static_cast<float>(largest / 127.0);
      float inverse = static_cast<float>(127.0 / largest);
      if (problem.scale != 0.0F) {
        inverse = static_cast<float>(1.0 / static_cast<double>(problem.scale));
      } else if (largest < 0x1p-100) {
        scale = 1.0F;
        inverse = 0.0F;
      }
      const int64_t slot = problem.slots[static_cast<size_t>(token)];
      for (int64_t i = 0; i < problem.width; ++i) {
        const double product = problem.value(token, head, i) * static_cast<double>(inverse);
        const double code = std::nearbyint(static_cast<double>(static_cast<float>(product)));
        stored.codes[static_cast<size_t>(slot * problem.slot_stride() +
                                         head * (problem.width + problem.pad) + i)] =
            static_cast<int8_t>(std::clamp(code, -127.0, 127.0));
      }
      if (problem.scale == 0.0F) {
        stored.scales[static_cast<size_t>(slot * (problem.kv_heads + 1) + head)] = scale;
      }
    }
  }
  return stored;
}

Stored store(const Kernel& kernel, const Problem& problem, int mode) {
  const std::string what = std::string(kernel.name) + " width " + std::to_string(problem.width) +
                           " pad " + std::to_string(problem.pad);
  run_case(kernel, what);
  const Stored start = problem.untouched();
  const Fenced<uint16_t> rows(problem.rows);
  const Fenced<int64_t> slots(problem.slots);
  const Fenced<int8_t> codes(start.codes);
  const Fenced<float> scales(start.scales);
  const Fenced<float> largest(start.largest);
  const StoreKv call = {
      problem.tokens,
      problem.kv_heads,
      problem.width,
      {rows.data(), problem.kv_heads * (problem.width + problem.pad), problem.width + problem.pad},
      slots.data(),
      codes.data(),
      problem.slot_stride(),
      problem.width + problem.pad,
      problem.scale == 0.0F ? scales.data() : nullptr,
      problem.kv_heads + 1,
      1,
      problem.scale,
      largest.data()};
  auto* entry = std::get<StoreKvKernel*>(kernel.entry);
  std::fesetround(mode);
  entry(call, StoreStage::kMeasure, 0, problem.kv_heads);
  for (int64_t head = problem.kv_heads; head-- > 0;) {
    entry(call, StoreStage::kStore, head, head + 1);
  }
  const bool kept = std::fegetround() == mode;
  std::fesetround(FE_TONEAREST);
  expect(kept, what + ": left another rounding mode");
  expect(codes.intact() && scales.intact() && largest.intact(), what + ": wrote out of range");
  return {{codes.data(), codes.data() + start.codes.size()},
          {scales.data(), scales.data() + start.scales.size()},
          {largest.data(), largest.data() + start.largest.size()}};
}

void test(const Problem& problem) {
  const Stored wanted = expected(problem);
  bool mixed = false;
  for (const Kernel* kernel : runnable(Operation::kStoreKv, problem.format.type)) {
    for (const int mode : kModes) {
      const Stored got = store(*kernel, problem, mode);
      expect(got == wanted, std::string(kernel->name) + ": width " + std::to_string(problem.width) +
                                " scale " + std::to_string(problem.scale) + " mode " +
                                std::to_string(mode) + ": not the codes and scales that are right");
      if (mixed) continue;
      const std::string group = std::string("store_kv_") + name_of(problem.format.type);
      mix_hash(group, got.codes.data(), got.codes.size());
      mix_hash(group, got.scales.data(), got.scales.size() * sizeof(float));
      mixed = true;
    }
  }
}

// Rows whose codes are told by hand.
void test_particular_rows(const Format& format) {
  Problem problem(format, 4, 1, 16, 1, 0.0F, 3);
  // Ties, as 127 / 127 is 1: 0.5, 1.5, 2.5 to even.
  const double ties[] = {127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5, -126.5, 0.0, -127.0};
  for (int64_t i = 0; i < 16; ++i) {
    problem.at(0, 0, i) = format.round(i < 11 ? ties[i] : 0.0);
    problem.at(1, 0, i) = format.round(0.0);
    problem.at(2, 0, i) = format.round(i == 3 ? -0.0 : i == 5 ? -format.largest : 1.0);
    problem.at(3, 0, i) = i % 2 == 0 ? 1 : 0x8001;  // the smallest numbers
  }
  test(problem);
  const Stored stored = expected(problem);
  const auto code = [&](int64_t token, int64_t i) {
    const auto slot = problem.slots[static_cast<size_t>(token)];
    return stored.codes[static_cast<size_t>(slot * problem.slot_stride() + i)];
  };
  const int8_t even[] = {127, 0, 2, 2, 0, -2, -2, 126, -126, 0, -127};
  for (int64_t i = 0; i < 11; ++i) expect(code(0, i) == even[i], "kv_store: ties not to even");
  for (int64_t i = 0; i < 16; ++i) expect(code(1, i) == 0, "kv_store: zeros are not zeros");
  expect(stored.scales[static_cast<size_t>(problem.slots[1] * 2)] == 1.0F,
         "kv_store: a row of zeros has another scale than 1");
}

// Two tokens in one slot: the later one stays. What saturates with a static scale, and what is not
// a number.
void test_edges(const Format& format) {
  Problem same(format, 3, 2, 24, 0, 0.0F, 4);
  same.slots = {1, 1, 0};
  test(same);
  test({format, 5, 2, 64, 1, 0.001F, 5});  // most of it saturates
  for (const Kernel* kernel : runnable(Operation::kStoreKv, format.type)) {
    for (const uint16_t bad :
         {format.nan, format.infinity, static_cast<uint16_t>(format.infinity | 0x8000)}) {
      for (const int64_t i : {0, 39}) {
        Problem problem(format, 2, 2, 40, 0, 0.0F, 6);
        problem.at(1, 0, i) = bad;
        const Fenced<uint16_t> rows(problem.rows);
        std::vector<float> largest(4, -1.0F);
        StoreKv call{};
        call.tokens = 2;
        call.kv_heads = 2;
        call.width = 40;
        call.rows = {rows.data(), 80, 40};
        call.largest = largest.data();
        run_case(*kernel, "not a number");
        std::get<StoreKvKernel*>(kernel->entry)(call, StoreStage::kMeasure, 0, 2);
        expect(std::isnan(largest[1]) && std::isfinite(largest[0]) && std::isfinite(largest[2]) &&
                   std::isfinite(largest[3]),
               std::string(kernel->name) + ": does not tell the row that is not finite");
      }
    }
  }
}

}  // namespace

void test_kv_store() {
  for (const Format* format : {&kBf16Format, &kFp16Format}) {
    for (const int64_t width : {8, 64, 72, 128, 256}) {
      for (const float scale : {0.0F, 0.013F}) {
        test({*format, 7, 2, width, width % 3, scale, static_cast<uint64_t>(width)});
      }
    }
    test_particular_rows(*format);
    test_edges(*format);
    note_dispatch("store_kv", name_of(format->type),
                  select_kernel(Operation::kStoreKv, format->type, 1, cpu_features()));
  }
}

}  // namespace sgl_rvv::tests
