// Hardware counters of this thread, through perf_event_open(2).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kernel_bench {

// A group of one: what one event counted between start() and stop(), or why it counts nothing.
class Counter {
 public:
  Counter(const char* name, uint32_t type, uint64_t config);
  ~Counter();
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;

  void start() const;
  void stop();

  [[nodiscard]] const char* name() const { return name_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }  // empty: it counts
  [[nodiscard]] uint64_t value() const { return value_; }

 private:
  const char* name_;
  int descriptor_;
  std::string reason_;
  uint64_t value_ = 0;
};

}  // namespace kernel_bench
