#include "rounding_modes.h"

#include <cfenv>

#include "harness.h"

namespace sgl_rvv::tests {
namespace {

#if defined(__riscv)

constexpr int kModes = 5;  // nearest even, to zero, down, up, nearest away from zero

// Without V there is no mode of fixed-point arithmetic.
int fixed_modes() {
  return cpu_features().has(kRvv) ? 4 : 1;
}

int floating_mode() {
  int mode;
  asm volatile("frrm %0" : "=r"(mode));
  return mode;
}

void set_floating_mode(int mode) {
  asm volatile("fsrm %0" : : "r"(mode) : "memory");
}

int fixed_mode() {
  int mode = 0;
  if (cpu_features().has(kRvv)) {
    asm volatile(".option push\n.option arch, +v\ncsrr %0, vxrm\n.option pop" : "=r"(mode));
  }
  return mode;
}

void set_fixed_mode(int mode) {
  if (cpu_features().has(kRvv)) {
    asm volatile(".option push\n.option arch, +v\ncsrw vxrm, %0\n.option pop"
                 :
                 : "r"(mode)
                 : "memory");
  }
}

#else

constexpr int kRoundings[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
constexpr int kModes = 4;

int fixed_modes() {
  return 1;
}

int floating_mode() {
  const int rounding = std::fegetround();
  for (int mode = 0; mode < kModes; ++mode) {
    if (kRoundings[mode] == rounding) return mode;
  }
  return -1;
}

void set_floating_mode(int mode) {
  std::fesetround(kRoundings[mode]);
}

int fixed_mode() {
  return 0;
}

void set_fixed_mode(int) {}

#endif

}  // namespace

void under_every_rounding_mode(const std::function<void(const std::string& mode)>& run) {
  const int fixed_before = fixed_mode();
  for (int mode = 0; mode < kModes; ++mode) {
    for (int fixed = 0; fixed < fixed_modes(); ++fixed) {
      const std::string name =
          "rounding mode " + std::to_string(mode) + ", " + std::to_string(fixed);
      set_floating_mode(mode);
      set_fixed_mode(fixed);
      run(name);
      const bool kept = floating_mode() == mode && fixed_mode() == fixed;
      set_floating_mode(0);
      expect(kept, name + " was not left as it was");
    }
  }
  set_fixed_mode(fixed_before);
}

}  // namespace sgl_rvv::tests
