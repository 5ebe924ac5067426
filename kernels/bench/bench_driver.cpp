// Times operators on the machine that it runs on, one thread, with hardware counters where there
// are any.
//
//   bench_driver --list                    one line a kernel of the registry, see workload.h
//   bench_driver REPEATS MIN_NS CASE...    per case REPEATS timings, each of as many calls as take
//                                          MIN_NS or more
//
// One line of JSON per case: {"case", "kernel", "macs", "calls", "ns": [whole nanoseconds of
// `calls` calls, REPEATS times], "counters": {name: {"per_call": number or null, "reason"}}},
// or {"case", "error"}.

#include <linux/perf_event.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "counters.h"
#include "driver.h"

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

void time_case(const Case& of, const Workload& work, const int64_t* numbers) {
  const int64_t calls = calls_for(work, numbers[1]);
  std::string times;
  for (int64_t i = 0; i < numbers[0]; ++i) {
    times += (i == 0 ? "" : ", ") + std::to_string(time_ns(work, calls));
  }
  std::printf(
      "{\"case\": \"%s\", \"kernel\": \"%s\", \"macs\": %lld, \"calls\": %lld, \"ns\": [%s], "
      "\"counters\": {%s}}\n",
      of.text.c_str(), work.kernel.c_str(), static_cast<long long>(work.macs),
      static_cast<long long>(calls), times.c_str(), count(work, calls).c_str());
}

}  // namespace
}  // namespace kernel_bench

int main(int argc, char** argv) {
  return kernel_bench::drive(argc, argv, "bench_driver --list | REPEATS MIN_NS CASE...", 2,
                             kernel_bench::time_case);
}
