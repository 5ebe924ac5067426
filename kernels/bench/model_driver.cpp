// Calls operators between marks, so that whoever traces the execution knows which blocks belong to
// which call. Static and torch-free; `rvvbench kernels model` runs it under QEMU.
//
//   model_driver --list            one line a kernel of the registry: name, operation, type of the
//   left
//                                  operand, "available" or "unavailable"
//   model_driver CALLS CASE...     per case: mark, CALLS calls, mark, 2 * CALLS calls, mark
//
// One line of JSON per case: {"case", "kernel", "macs"}, or {"case", "error"} and no marks.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <vector>

#include "workload.h"

// A function that only this program calls: its address in the trace is the mark.
extern "C" __attribute__((noinline)) void rvvbench_mark() {
  asm volatile("" ::: "memory");
}

namespace kernel_bench {
namespace {

void trace(const Case& of, int64_t calls) {
  Workload work;
  try {
    work = make_workload(of);
  } catch (const std::invalid_argument& error) {
    std::printf("{\"case\": \"%s\", \"error\": \"%s\"}\n", of.text.c_str(), error.what());
    return;
  }
  work.call();  // what happens once (lazy initialisation) happens here
  rvvbench_mark();
  for (int64_t i = 0; i < calls; ++i) work.call();
  rvvbench_mark();
  for (int64_t i = 0; i < 2 * calls; ++i) work.call();
  rvvbench_mark();
  std::printf("{\"case\": \"%s\", \"kernel\": \"%s\", \"macs\": %lld}\n", of.text.c_str(),
              work.kernel.c_str(), static_cast<long long>(work.macs));
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    list_kernels();
    return 0;
  }
  const long long calls = argc > 2 ? std::strtoll(argv[1], nullptr, 10) : 0;
  if (calls <= 0) {
    std::fprintf(stderr, "usage: model_driver --list | CALLS CASE...\n");
    return 2;
  }
  for (int i = 2; i < argc; ++i) trace(parse_case(argv[i]), calls);
  return 0;
}

}  // namespace
}  // namespace kernel_bench

int main(int argc, char** argv) {
  try {
    return kernel_bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
