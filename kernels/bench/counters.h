// Hardware counters of this thread, through perf_event_open(2).
#pragma once

#include <cstdint>
#include <string>

namespace kernel_bench {

// A group of one: what one event counted between start() and stop(), or why it counts nothing.
class Counter {
 public:
  Counter(uint32_t type, uint64_t config);
  ~Counter();
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  void start() const;
  void stop();

  [[nodiscard]] const std::string& reason() const { return reason_; }  // empty: it counts
  [[nodiscard]] uint64_t value() const { return value_; }

 private:
  int descriptor_;
  std::string reason_;
  uint64_t value_ = 0;
};

}  // namespace kernel_bench
