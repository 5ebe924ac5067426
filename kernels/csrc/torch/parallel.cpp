#include "torch/parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>

// libgomp's stable ABI: what GCC emits for "#pragma omp parallel".
extern "C" void GOMP_parallel(void (*function)(void*), void* data, unsigned threads,
                              unsigned flags);
extern "C" int omp_get_thread_num();
extern "C" int omp_get_num_threads();

namespace sgl_rvv {
namespace {

struct Region {
  int64_t count;
  RangeFunction* function;
  void* context;
};

void run_share(void* data) {
  const Region& region = *static_cast<const Region*>(data);
  const int64_t threads = std::min<int64_t>(omp_get_num_threads(), region.count);
  const int64_t share = at::divup(region.count, threads);
  const int64_t begin = omp_get_thread_num() * share;
  if (begin >= region.count) return;
  const at::internal::ThreadIdGuard thread(omp_get_thread_num());
  const c10::ParallelGuard inside(true);
  region.function(region.context, begin, std::min(region.count, begin + share));
}

}  // namespace

void parallel_ranges(int64_t count, RangeFunction* function, void* context) {
  if (count <= 0) return;
  at::internal::lazy_init_num_threads();
  if (count == 1 || at::in_parallel_region() || at::get_num_threads() == 1) {
    function(context, 0, count);
    return;
  }
  Region region = {count, function, context};
  // 0 threads: as many as torch.set_num_threads last said.
  GOMP_parallel(run_share, &region, 0, 0);
}

}  // namespace sgl_rvv
