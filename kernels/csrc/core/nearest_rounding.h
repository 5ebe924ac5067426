// Floating-point arithmetic that rounds to nearest even, whatever the thread's rounding mode is.
#pragma once

#if !defined(__riscv)
#include <cfenv>
#endif

namespace sgl_rvv {

// While it lives, the rounding mode of this thread is to nearest, ties to even. What reads its
// operands from memory and writes its results to memory within that time is computed in this mode:
// no load moves before the constructor, no store after the destructor. Always inlined: a copy of
// its own would be shared between files that are compiled for different extensions.
class NearestRounding {
 public:
#if defined(__riscv)
  __attribute__((always_inline)) NearestRounding() {
    asm volatile("fsrmi %0, 0" : "=r"(before_) : : "memory");
  }
  __attribute__((always_inline)) ~NearestRounding() {
    asm volatile("fsrm %0" : : "r"(before_) : "memory");
  }
#else
  __attribute__((always_inline)) NearestRounding() : before_(std::fegetround()) {
    set(FE_TONEAREST);
  }
  __attribute__((always_inline)) ~NearestRounding() { set(before_); }
#endif
  NearestRounding(const NearestRounding&) = delete;
  NearestRounding& operator=(const NearestRounding&) = delete;

 private:
#if defined(__riscv)
  long before_;
#else
  static void set(int mode) {
    std::fesetround(mode);
    asm volatile("" : : : "memory");
  }

  int before_;
#endif
};

}  // namespace sgl_rvv
