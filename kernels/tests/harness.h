// What the tests of all operations share: a verdict, the count of what was run, memory with fences,
// and numbers that are the same on every machine.
//
// A test file has one function that runs its operation's kernels (kernel_tests.cpp lists them). For
// each kernel that runnable() names it calls run_case() for each thing that it runs; a kernel of
// the registry that this CPU can run and that no case ran is a failure of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/registry.h"

namespace sgl_rvv::tests {

// Counts a failure; the first twenty are printed.
void fail(const std::string& what);
void expect(bool holds, const std::string& what);

// The kernels of `operation` whose left operand is of `type` that this CPU can run and the command
// line did not leave out, in the order of the registry.
[[nodiscard]] std::vector<const Kernel*> runnable(Operation operation, Type type);

// One more case of `kernel`; `what` is printed if the program dies in it (a fence was touched).
void run_case(const Kernel& kernel, const std::string& what);

// Adds results to the hash that is printed for `group`: the same on every machine for kernels whose
// results do not depend on it.
void mix_hash(const std::string& group, const void* bytes, size_t count);

// Prints which kernel is chosen: {"<group>": {"<key>": "<name>"}}.
void note_dispatch(const std::string& group, const std::string& key, const Kernel* kernel);

// splitmix64: the same numbers on every platform.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits();
  double unit();               // [0, 1)
  int64_t below(int64_t end);  // [0, end)
  // Between -2 and 2, with an exponent that varies.
  float value();

 private:
  uint64_t state_;
};

// `bytes` of memory that end (kAfter) or begin (kBefore) at a page that may not be touched: reading
// or writing out of range on that side ends the program with the name of the case. The bytes on the
// other side are filled with a pattern and checked by intact(). `misalign` moves the end of kAfter
// back by that many bytes.
enum class Fence { kBefore, kAfter };

class FencedBytes {
 public:
  FencedBytes(size_t bytes, Fence fence, size_t misalign = 0);
  FencedBytes(const FencedBytes&) = delete;
  FencedBytes& operator=(const FencedBytes&) = delete;
  ~FencedBytes();

  [[nodiscard]] unsigned char* data() const { return data_; }
  [[nodiscard]] size_t size() const { return size_; }
  // Whether what lies beside the bytes is as it was.
  [[nodiscard]] bool intact() const;

 private:
  unsigned char* mapping_;
  size_t mapped_;
  unsigned char* usable_;
  size_t usable_bytes_;
  unsigned char* data_;
  size_t size_;
};

template <class T>
class Fenced {
 public:
  explicit Fenced(size_t count, Fence fence = Fence::kAfter, size_t misalign = 0)
      : bytes_(count * sizeof(T), fence, misalign) {}
  Fenced(const std::vector<T>& values, Fence fence = Fence::kAfter, size_t misalign = 0)
      : Fenced(values.size(), fence, misalign) {
    for (size_t i = 0; i < values.size(); ++i) data()[i] = values[i];
  }
  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(bytes_.data()); }
  [[nodiscard]] bool intact() const { return bytes_.intact(); }

 private:
  FencedBytes bytes_;
};

// BF16 and FP16 as the tests see them: patterns, numbers, exact rounding.
struct Format {
  Type type;
  int significant_bits;  // with the hidden one
  int least_exponent;  // of the last place of a subnormal: 2^least_exponent is the smallest number
  double largest;
  uint16_t infinity;
  uint16_t nan;

  [[nodiscard]] double value(uint16_t bits) const;
  // To nearest, ties to even, at once: through FP32 a double would be rounded twice.
  [[nodiscard]] uint16_t round(double value) const;
  [[nodiscard]] bool is_nan(uint16_t bits) const { return (bits & 0x7fff) > infinity; }
  // Orders patterns as numbers (no NaN).
  [[nodiscard]] int order(uint16_t bits) const {
    return (bits & 0x8000) != 0 ? -static_cast<int>(bits & 0x7fff) : static_cast<int>(bits);
  }
};

extern const Format kBf16Format;
extern const Format kFp16Format;
[[nodiscard]] const Format& format_of(Type type);  // kBf16 or kFp16

// Higham, Accuracy and Stability of Numerical Algorithms, section 3.1: n roundings to FP32 in a row
// change a sum by at most gamma(n) times the sum of the magnitudes. gamma(n) = n u / (1 - n u), u =
// 2^-24.
[[nodiscard]] double gamma(int64_t roundings);

}  // namespace sgl_rvv::tests
