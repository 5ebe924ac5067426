// Calls operators between marks, so that whoever traces the execution knows which blocks belong to
// which call. Static and torch-free; `rvvbench kernels model` runs it under QEMU.
//
//   model_driver --list            one line a kernel of the registry, see workload.h
//   model_driver CALLS CASE...     per case: mark, CALLS calls, mark, 2 * CALLS calls, mark
//
// One line of JSON per case: {"case", "kernel", "macs", "elements"}, or {"case", "error"} and no
// marks.

#include <cstdio>

#include "driver.h"

// A function that only this program calls: its address in the trace is the mark.
extern "C" __attribute__((noinline)) void rvvbench_mark() {
  asm volatile("" ::: "memory");
}

namespace kernel_bench {
namespace {

void trace(const Case& of, const Workload& work, const int64_t* numbers) {
  const int64_t calls = numbers[0];
  work.call();  // what happens once (lazy initialisation) happens here
  rvvbench_mark();
  for (int64_t i = 0; i < calls; ++i) work.call();
  rvvbench_mark();
  for (int64_t i = 0; i < 2 * calls; ++i) work.call();
  rvvbench_mark();
  std::printf("{\"case\": \"%s\", \"kernel\": \"%s\", \"macs\": %lld, \"elements\": %lld}\n",
              of.text.c_str(), work.kernel.c_str(), static_cast<long long>(work.macs),
              static_cast<long long>(work.elements));
}

}  // namespace
}  // namespace kernel_bench

int main(int argc, char** argv) {
  return kernel_bench::drive(argc, argv, "model_driver --list | CALLS CASE...", 1,
                             kernel_bench::trace);
}
