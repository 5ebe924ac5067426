// Rows in steps of kStepColumns elements, several rows side by side (inputs, outputs, what is
// kept).
//
// On a core that issues in order, a scalar instruction among vector instructions waits for the one
// before it, and each vector load and store needs an address of its own. So the addresses of a
// round of steps are made at once, before its vector instructions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace sgl_rvv {

// Two groups of 16 lanes.
constexpr int64_t kStepColumns = 32;
constexpr int64_t kStepLanes = kStepColumns / 2;

// The two groups of a step are its even and odd elements, or its first and second 16. Where a group
// has fewer than 16 lanes a step is done in parts: that of lanes [lane, lane + vl) begins at
// first_of(lane), its second group second_of(vl) after that, and it ends at width_of(vl).
template <class Format>
constexpr int64_t first_of(int64_t lane) {
  return Format::kEvenOdd ? 2 * lane : lane;
}
template <class Format>
constexpr int64_t second_of(int64_t vl) {
  return Format::kEvenOdd ? vl : kStepLanes;
}
template <class Format>
constexpr int64_t width_of(int64_t vl) {
  return second_of<Format>(vl) + vl;
}

// All elements of a step, or the first `count` of them.
struct WholeStep {};
struct PartStep {
  size_t count;
};

// A row: where it begins, and the bytes from step to step.
struct Stream {
  uintptr_t place;
  uintptr_t step_bytes;
};

template <class Element>
[[nodiscard]] inline Stream stream(Element* row) {
  return {reinterpret_cast<uintptr_t>(row), kStepColumns * sizeof(Element)};
}

// Rows of 16-bit elements, `stride` elements apart, and whether all are aligned to 4 bytes.
struct Rows16 {
  const void* first;
  int64_t stride;
};
[[nodiscard]] inline bool in_words(const Rows16& rows) {
  return reinterpret_cast<uintptr_t>(rows.first) % 4 == 0 && rows.stride % 2 == 0;
}

#define SGL_RVV_STEP inline __attribute__((always_inline))

// Addresses are in registers when this is passed, and made no later.
template <int Count>
SGL_RVV_STEP void settle(uintptr_t* p) {
  static_assert(Count <= 6 || Count == 8 || Count == 10);
  if constexpr (Count == 1) {
    asm volatile("" : "+r"(p[0]));
  } else if constexpr (Count == 2) {
    asm volatile("" : "+r"(p[0]), "+r"(p[1]));
  } else if constexpr (Count == 3) {
    asm volatile("" : "+r"(p[0]), "+r"(p[1]), "+r"(p[2]));
  } else if constexpr (Count == 4) {
    asm volatile("" : "+r"(p[0]), "+r"(p[1]), "+r"(p[2]), "+r"(p[3]));
  } else if constexpr (Count == 5) {
    asm volatile("" : "+r"(p[0]), "+r"(p[1]), "+r"(p[2]), "+r"(p[3]), "+r"(p[4]));
  } else if constexpr (Count == 6) {
    asm volatile("" : "+r"(p[0]), "+r"(p[1]), "+r"(p[2]), "+r"(p[3]), "+r"(p[4]), "+r"(p[5]));
  } else if constexpr (Count == 8) {
    asm volatile(""
                 : "+r"(p[0]), "+r"(p[1]), "+r"(p[2]), "+r"(p[3]), "+r"(p[4]), "+r"(p[5]),
                   "+r"(p[6]), "+r"(p[7]));
  } else {
    asm volatile(""
                 : "+r"(p[0]), "+r"(p[1]), "+r"(p[2]), "+r"(p[3]), "+r"(p[4]), "+r"(p[5]),
                   "+r"(p[6]), "+r"(p[7]), "+r"(p[8]), "+r"(p[9]));
  }
}

// One step of `Count` rows.
template <int Count>
struct Places {
  uintptr_t at[Count];

  template <class Element>
  [[nodiscard]] SGL_RVV_STEP Element* of(int row) const {
    return reinterpret_cast<Element*>(at[row]);
  }
};

template <int Count>
struct Streams {
  Stream rows[Count];

  // The next `Steps` steps, which are passed.
  template <int Steps>
  SGL_RVV_STEP void take(Places<Count> (&steps)[Steps]) {
    uintptr_t places[Steps * Count];
    for (int step = 0; step < Steps; ++step) {
      for (int row = 0; row < Count; ++row) {
        places[step * Count + row] =
            rows[row].place + static_cast<uintptr_t>(step) * rows[row].step_bytes;
      }
    }
    settle<Steps * Count>(places);
    for (int row = 0; row < Count; ++row) {
      for (int step = 0; step < Steps; ++step) steps[step].at[row] = places[step * Count + row];
      rows[row].place = places[row] + Steps * rows[row].step_bytes;
    }
  }
};

// body(places, step) for `count` columns, of which each step has `width` (at most kStepColumns), in
// rounds of `Steps` steps. A body that takes whole steps only gets no other.
template <int Steps, int Count, class Body>
SGL_RVV_STEP void for_steps(Streams<Count> streams, int64_t count, int64_t width, Body body) {
  for (; count >= (Steps - 1) * kStepColumns + width; count -= Steps * kStepColumns) {
    Places<Count> steps[Steps];
    streams.take(steps);
    for (int step = 0; step < Steps; ++step) body(steps[step], WholeStep{});
  }
  Places<Count> one[1];
  for (; count >= width; count -= kStepColumns) {
    streams.take(one);
    body(one[0], WholeStep{});
  }
  if constexpr (std::is_invocable_v<Body, Places<Count>, PartStep>) {
    if (count > 0) {
      streams.take(one);
      body(one[0], PartStep{static_cast<size_t>(count)});
    }
  }
}

// The same in two parts, compute(places, step, a, b), then finish(places, step, a, b): a step is
// computed while the one before it is finished, so that the instructions of both overlap. The last
// `Late` rows are those that finish() has the places of, the others those of compute().
template <int Late, class Float, int Count, class Compute, class Finish>
SGL_RVV_STEP void for_overlapping_steps(Streams<Count> streams, int64_t count, int64_t width,
                                        Compute compute, Finish finish) {
  for (int row = Count - Late; row < Count; ++row) {
    streams.rows[row].place -= streams.rows[row].step_bytes;
  }
  Float a, b, c, d;
  Places<Count> one[1];
  if (count >= width) {
    streams.take(one);
    compute(one[0], WholeStep{}, a, b);
    count -= kStepColumns;
    for (; count >= kStepColumns + width; count -= 2 * kStepColumns) {
      Places<Count> two[2];
      streams.take(two);
      compute(two[0], WholeStep{}, c, d);
      finish(two[0], WholeStep{}, a, b);
      compute(two[1], WholeStep{}, a, b);
      finish(two[1], WholeStep{}, c, d);
    }
    if (count >= width) {
      streams.take(one);
      compute(one[0], WholeStep{}, c, d);
      finish(one[0], WholeStep{}, a, b);
      a = c;
      b = d;
      count -= kStepColumns;
    }
    streams.take(one);
    if (count <= 0) {
      finish(one[0], WholeStep{}, a, b);
      return;
    }
    const PartStep rest = {static_cast<size_t>(count)};
    compute(one[0], rest, c, d);
    finish(one[0], WholeStep{}, a, b);
    streams.take(one);
    finish(one[0], rest, c, d);
  } else if (count > 0) {
    const PartStep rest = {static_cast<size_t>(count)};
    streams.take(one);
    compute(one[0], rest, a, b);
    streams.take(one);
    finish(one[0], rest, a, b);
  }
}

}  // namespace sgl_rvv
