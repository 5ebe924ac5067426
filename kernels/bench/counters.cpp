#include "counters.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace kernel_bench {

Counter::Counter(uint32_t type, uint64_t config) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = type;
  attributes.config = config;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  descriptor_ = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
  if (descriptor_ < 0) {
    reason_ = std::string("perf_event_open: ") + std::strerror(errno);
    if (errno == EACCES || errno == EPERM) reason_ += " (see kernel.perf_event_paranoid)";
  }
}

Counter::~Counter() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Counter::start() const {
  if (descriptor_ < 0) return;
  ioctl(descriptor_, PERF_EVENT_IOC_RESET, 0);
  ioctl(descriptor_, PERF_EVENT_IOC_ENABLE, 0);
}

void Counter::stop() {
  if (descriptor_ < 0) return;
  ioctl(descriptor_, PERF_EVENT_IOC_DISABLE, 0);
  struct {
    uint64_t value, enabled, running;
  } got{};
  if (read(descriptor_, &got, sizeof got) != static_cast<ssize_t>(sizeof got)) {
    reason_ = std::string("reading the counter failed: ") + std::strerror(errno);
  } else if (got.running != got.enabled) {
    reason_ = "the counter was shared with others and ran only part of the time";
  } else {
    value_ = got.value;
  }
}

}  // namespace kernel_bench
