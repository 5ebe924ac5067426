// Work of generated code on OpenMP's threads, as Inductor's own kernels share theirs.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace sgl_rvv {

// This thread's range of [0, count).
template <class Work>
void do_share(int64_t count, const Work& work) {
  const int64_t threads = omp_get_num_threads();
  const int64_t share = (count + threads - 1) / threads;
  const int64_t begin = omp_get_thread_num() * share;
  if (begin < count) work(begin, std::min(count, begin + share));
}

// Calls `first` on disjoint ranges that cover [0, first_count), and when that is done `second` on
// such of [0, second_count). `Threads` 0: as many as OpenMP has.
template <int Threads, class First, class Second>
void in_two_phases(int64_t first_count, const First& first, int64_t second_count,
                   const Second& second) {
  if constexpr (Threads == 1) {
    first(0, first_count);
    second(0, second_count);
  } else {
#pragma omp parallel num_threads(Threads > 0 ? Threads : omp_get_max_threads())
    {
      do_share(first_count, first);
#pragma omp barrier
      do_share(second_count, second);
    }
  }
}

}  // namespace sgl_rvv
