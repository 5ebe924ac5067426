// Times operators on the machine that it runs on, one thread, with hardware counters where there
// are any.
//
//   bench_driver --list                  one line a kernel of the registry, see workload.h
//   bench_driver REPEATS MIN_NS CASE...    per case REPEATS timings, each of as many calls as take
//                                          MIN_NS or more
//
// One line of JSON per case: {"case", "kernel", "macs", "calls", "ns": [whole nanoseconds of
// `calls` calls, REPEATS times], "counters": {name: {"per_call": number or null, "reason"}}},
// or {"case", "error"}.

#include <linux/perf_event.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>

#include "counters.h"
#include "workload.h"

namespace kernel_bench {
namespace {

int64_t time_ns(const Workload& work, int64_t calls) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i) work.call();
  const auto end = std::chrono::steady_clock::now();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
}

// As many calls as take at least `min_ns`; they warm caches and branch predictors too.
int64_t calls_for(const Workload& work, int64_t min_ns) {
  work.call();
  for (int64_t calls = 1;; calls *= 2) {
    if (time_ns(work, calls) >= min_ns) return calls;
  }
}

std::string count(const Workload& work, int64_t calls) {
  struct {
    const char* name;
    uint64_t config;
  } const events[] = {{"cycles", PERF_COUNT_HW_CPU_CYCLES},
                      {"instructions", PERF_COUNT_HW_INSTRUCTIONS},
                      {"cache_misses", PERF_COUNT_HW_CACHE_MISSES},
                      {"branch_misses", PERF_COUNT_HW_BRANCH_MISSES}};
  std::string text;
  // One after the other: small cores have few counters, and a shared one only estimates.
  for (const auto& event : events) {
    Counter counter(PERF_TYPE_HARDWARE, event.config);
    if (counter.reason().empty()) {
      counter.start();
      for (int64_t i = 0; i < calls; ++i) work.call();
      counter.stop();
    }
    char line[256];
    if (counter.reason().empty()) {
      std::snprintf(line, sizeof line, "\"%s\": {\"per_call\": %.1f, \"reason\": null}", event.name,
                    static_cast<double>(counter.value()) / static_cast<double>(calls));
    } else {
      std::snprintf(line, sizeof line, "\"%s\": {\"per_call\": null, \"reason\": \"%s\"}",
                    event.name, counter.reason().c_str());
    }
    text += (text.empty() ? "" : ", ") + std::string(line);
  }
  return text;
}

void time_case(const Case& of, int64_t repeats, int64_t min_ns) {
  Workload work;
  try {
    work = make_workload(of);
  } catch (const std::invalid_argument& error) {
    std::printf("{\"case\": \"%s\", \"error\": \"%s\"}\n", of.text.c_str(), error.what());
    return;
  }
  const int64_t calls = calls_for(work, min_ns);
  std::string times;
  for (int64_t i = 0; i < repeats; ++i) {
    times += (i == 0 ? "" : ", ") + std::to_string(time_ns(work, calls));
  }
  std::printf(
      "{\"case\": \"%s\", \"kernel\": \"%s\", \"macs\": %lld, \"calls\": %lld, \"ns\": [%s], "
      "\"counters\": {%s}}\n",
      of.text.c_str(), work.kernel.c_str(), static_cast<long long>(work.macs),
      static_cast<long long>(calls), times.c_str(), count(work, calls).c_str());
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    list_kernels();
    return 0;
  }
  const long long repeats = argc > 3 ? std::strtoll(argv[1], nullptr, 10) : 0;
  const long long min_ns = argc > 3 ? std::strtoll(argv[2], nullptr, 10) : 0;
  if (repeats <= 0 || min_ns <= 0) {
    std::fprintf(stderr, "usage: bench_driver --list | REPEATS MIN_NS CASE...\n");
    return 2;
  }
  for (int i = 3; i < argc; ++i) time_case(parse_case(argv[i]), repeats, min_ns);
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
