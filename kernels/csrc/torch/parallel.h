// torch's thread pool, for code that clang compiles.
//
// at::parallel_for is a header template around "#pragma omp parallel". Debian's torch runs on GCC's
// libgomp; clang would lower the pragma to LLVM's libomp, a second OpenMP runtime with threads of
// its own in the same process. So this file enters torch's runtime through libgomp's own ABI, with
// at::parallel_for's rules.
#pragma once

#include <cstdint>
#include <type_traits>

namespace sgl_rvv {

using RangeFunction = void(void* context, int64_t begin, int64_t end);

// Calls `function` on disjoint ranges that cover [0, count), on torch's threads where there is more
// than one and this is not already a parallel region. `function` must not throw and must not touch
// tensors, only their data.
void parallel_ranges(int64_t count, RangeFunction* function, void* context);

// The same for `first` on [0, first_count), and then, when all of that is done, for `second` on
// [0, second_count): one parallel region with a barrier in it.
void parallel_phases(int64_t first_count, RangeFunction* first, void* first_context,
                     int64_t second_count, RangeFunction* second, void* second_context);

template <class Function>
void parallel_for(int64_t count, Function&& function) {
  using Callable = std::remove_reference_t<Function>;
  parallel_ranges(
      count,
      [](void* context, int64_t begin, int64_t end) {
        (*static_cast<Callable*>(context))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(&function)));
}

template <class First, class Second>
void parallel_for_then(int64_t first_count, const First& first, int64_t second_count,
                       const Second& second) {
  parallel_phases(
      first_count,
      [](void* context, int64_t begin, int64_t end) {
        (*static_cast<const First*>(context))(begin, end);
      },
      const_cast<First*>(&first), second_count,
      [](void* context, int64_t begin, int64_t end) {
        (*static_cast<const Second*>(context))(begin, end);
      },
      const_cast<Second*>(&second));
}

}  // namespace sgl_rvv
