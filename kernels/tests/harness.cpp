#include "harness.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "verdict.h"

namespace sgl_rvv::tests {
namespace {

constexpr unsigned char kPattern = 0xa5;
constexpr uint64_t kFnvStart = 0xcbf29ce484222325ULL;
constexpr uint64_t kFnvPrime = 0x100000001b3ULL;

struct State {
  int failures = 0;
  std::string only;
  std::map<std::string, int64_t> cases;
  std::map<std::string, uint64_t> hashes;
  std::map<std::string, std::map<std::string, std::string>> dispatch;
};

State& state() {
  static State instance;
  return instance;
}

// For the signal handler, which may touch nothing that allocates.
char current[256] = "nothing yet";

void die(int) {
  constexpr char kSays[] = "FAIL memory out of range was touched in: ";
  (void)!write(STDERR_FILENO, kSays, sizeof kSays - 1);
  (void)!write(STDERR_FILENO, current, std::strlen(current));
  (void)!write(STDERR_FILENO, "\n", 1);
  _exit(1);
}

size_t page_bytes() {
  static const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

template <class Value, class Text>
std::string object(const std::map<std::string, Value>& values, Text&& text) {
  std::string joined;
  for (const auto& [key, value] : values) {
    joined += (joined.empty() ? "\"" : ", \"") + key + "\": " + text(value);
  }
  return "{" + joined + "}";
}

}  // namespace

void fail(const std::string& what) {
  if (++state().failures <= 20) std::fprintf(stderr, "FAIL %s\n", what.c_str());
}

void expect(bool holds, const std::string& what) {
  if (!holds) fail(what);
}

std::vector<const Kernel*> runnable(Operation operation, Type type) {
  std::vector<const Kernel*> found;
  for (const Kernel& kernel : kernels()) {
    if (kernel.operation() == operation && kernel.left == type &&
        (state().only.empty() || state().only == kernel.name) && cpu_features().has(kernel.needs)) {
      found.push_back(&kernel);
    }
  }
  return found;
}

void run_case(const Kernel& kernel, const std::string& what) {
  ++state().cases[kernel.name];
  std::snprintf(current, sizeof current, "%s %s", kernel.name, what.c_str());
}

void mix_hash(const std::string& group, const void* bytes, size_t count) {
  uint64_t& hash = state().hashes.try_emplace(group, kFnvStart).first->second;
  const auto* values = static_cast<const unsigned char*>(bytes);
  for (size_t i = 0; i < count; ++i) hash = (hash ^ values[i]) * kFnvPrime;
}

void note_dispatch(const std::string& group, const std::string& key, const Kernel* kernel) {
  expect(kernel != nullptr, group + " " + key + ": no kernel is chosen");
  expect(kernel == nullptr || cpu_features().has(kernel->needs),
         group + " " + key + ": the kernel that is chosen cannot run here");
  state().dispatch[group][key] = kernel == nullptr ? "" : kernel->name;
}

void restrict_to(const std::string& kernel) {
  state().only = kernel;
}

void catch_fences() {
  std::signal(SIGSEGV, die);
  std::signal(SIGBUS, die);
}

void expect_all_tested() {
  bool known = state().only.empty();
  for (const Kernel& kernel : kernels()) {
    const bool wanted = state().only.empty() || state().only == kernel.name;
    known = known || wanted;
    if (wanted && cpu_features().has(kernel.needs) && state().cases[kernel.name] == 0) {
      fail(std::string(kernel.name) + ": no test ran it");
    }
  }
  expect(known, state().only + ": no kernel has that name");
}

int print_verdict() {
  const auto number = [](int64_t value) { return std::to_string(value); };
  const auto quoted = [](const std::string& value) { return '"' + value + '"'; };
  const auto hex = [](uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "\"%016llx\"", static_cast<unsigned long long>(value));
    return std::string(text);
  };
  const auto nested = [&](const std::map<std::string, std::string>& value) {
    return object(value, quoted);
  };
  int64_t cases = 0;
  for (const auto& [name, count] : state().cases) cases += count;
  const CpuFeatures& cpu = cpu_features();
  std::printf(
      "{\"vlen_bits\": %lld, \"rvv\": %s, \"zvfh\": %s, \"cases\": %lld, \"failures\": %d, "
      "\"hashes\": %s, \"kernels\": %s, \"dispatch\": %s}\n",
      static_cast<long long>(cpu.vlen_bits), cpu.has(kRvv) ? "true" : "false",
      cpu.has(kRvvZvfh) ? "true" : "false", static_cast<long long>(cases), state().failures,
      object(state().hashes, hex).c_str(), object(state().cases, number).c_str(),
      object(state().dispatch, nested).c_str());
  return state().failures == 0 ? 0 : 1;
}

uint64_t Random::bits() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

double Random::unit() {
  return static_cast<double>(bits() >> 11) * 0x1.0p-53;
}

int64_t Random::below(int64_t end) {
  return static_cast<int64_t>(bits() % static_cast<uint64_t>(end));
}

float Random::value() {
  const double place = unit();
  const int exponent = static_cast<int>(bits() % 6);
  return static_cast<float>(std::ldexp(2.0 * place - 1.0, 1 - exponent));
}

FencedBytes::FencedBytes(size_t bytes, Fence fence, size_t misalign) : size_(bytes) {
  const size_t page = page_bytes();
  usable_bytes_ = (bytes + misalign + page - 1) / page * page + page;
  mapped_ = usable_bytes_ + 2 * page;
  void* mapping = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) std::abort();
  mapping_ = static_cast<unsigned char*>(mapping);
  usable_ = mapping_ + page;
  if (mprotect(usable_, usable_bytes_, PROT_READ | PROT_WRITE) != 0) std::abort();
  data_ = fence == Fence::kAfter ? usable_ + usable_bytes_ - bytes - misalign : usable_;
  std::memset(usable_, kPattern, usable_bytes_);
}

FencedBytes::~FencedBytes() {
  munmap(mapping_, mapped_);
}

bool FencedBytes::intact() const {
  const auto untouched = [](unsigned char byte) { return byte == kPattern; };
  return std::all_of(usable_, data_, untouched) &&
         std::all_of(data_ + size_, usable_ + usable_bytes_, untouched);
}

const Format kBf16Format = {Type::kBf16, 8, -133, 0x1.fep127, 0x7f80, 0x7fc0};
const Format kFp16Format = {Type::kFp16, 11, -24, 65504.0, 0x7c00, 0x7e00};

const Format& format_of(Type type) {
  return type == Type::kBf16 ? kBf16Format : kFp16Format;
}

double Format::value(uint16_t bits) const {
  const int fraction_bits = significant_bits - 1;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int exponent = (bits & 0x7fff) >> fraction_bits;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if ((bits & 0x7fff) > infinity) return std::nan("");
  if ((bits & 0x7fff) == infinity) return sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, least_exponent);
  return sign * std::ldexp(fraction + (1 << fraction_bits), least_exponent + exponent - 1);
}

uint16_t Format::round(double value) const {
  if (std::isnan(value)) return nan;
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0.0) return sign;
  if (std::isinf(magnitude)) return sign | infinity;
  int exponent;
  std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent - 1), 2^exponent)
  const int place = std::max(exponent - significant_bits, least_exponent);
  const double units = std::nearbyint(std::ldexp(magnitude, -place));
  if (std::ldexp(units, place) > largest) return sign | infinity;
  // Units may carry into the next exponent: adding, not or-ing, gets that right.
  const int fraction_bits = significant_bits - 1;
  const int biased = place - least_exponent;
  const auto bits = (static_cast<int>(biased) << fraction_bits) + static_cast<int>(units);
  return static_cast<uint16_t>(sign | bits);
}

double gamma(int64_t roundings) {
  const double terms = std::ldexp(static_cast<double>(roundings), -24);
  return terms / (1.0 - terms);
}

}  // namespace sgl_rvv::tests
