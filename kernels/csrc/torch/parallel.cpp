#include "torch/parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>

// libgomp's stable ABI: what GCC emits for "#pragma omp parallel".
extern "C" void GOMP_parallel(void (*function)(void*), void* data, unsigned threads,
                              unsigned flags);
extern "C" void GOMP_barrier();
extern "C" int omp_get_thread_num();
extern "C" int omp_get_num_threads();

namespace sgl_rvv {
namespace {

struct Region {
  int64_t count;
  RangeFunction* function;
  void* context;
};

void run_share(const Region& region) {
  const int64_t threads = std::min<int64_t>(omp_get_num_threads(), region.count);
  const int64_t share = at::divup(region.count, threads);
  const int64_t begin = omp_get_thread_num() * share;
  if (begin >= region.count) return;
  const at::internal::ThreadIdGuard thread(omp_get_thread_num());
  const c10::ParallelGuard inside(true);
  region.function(region.context, begin, std::min(region.count, begin + share));
}

void run_region(void* data) {
  run_share(*static_cast<const Region*>(data));
}

void run_phases(void* data) {
  const Region* phases = static_cast<const Region*>(data);
  run_share(phases[0]);
  GOMP_barrier();
  run_share(phases[1]);
}

// Whether this thread does the work by itself.
bool alone() {
  at::internal::lazy_init_num_threads();
  return at::in_parallel_region() || at::get_num_threads() == 1;
}

}  // namespace

void parallel_ranges(int64_t count, RangeFunction* function, void* context) {
  if (count <= 0) return;
  if (count == 1 || alone()) {
    function(context, 0, count);
    return;
  }
  Region region = {count, function, context};
  // 0 threads: as many as torch.set_num_threads last said.
  GOMP_parallel(run_region, &region, 0, 0);
}

void parallel_phases(int64_t first_count, RangeFunction* first, void* first_context,
                     int64_t second_count, RangeFunction* second, void* second_context) {
  if (first_count <= 0 || second_count <= 1 || alone()) {
    parallel_ranges(first_count, first, first_context);
    parallel_ranges(second_count, second, second_context);
    return;
  }
  Region phases[] = {{first_count, first, first_context}, {second_count, second, second_context}};
  GOMP_parallel(run_phases, phases, 0, 0);
}

}  // namespace sgl_rvv
