// The errors of elementary.h over all 2^32 float32, against libm in double. For machines with fused
// multiply-add:
//
//   g++ -O2 -march=x86-64-v3 -ffp-contract=off -fopenmp -I<include> exhaustive.cpp && ./a.out
//
// With EVERY=n in the environment only one in n blocks of eight neighbours is tried.
//
// Prints one line per function: name, worst error in ULP, and where. Exit code 1 where a special
// value is wrong.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rvv_inductor/elementary.h"

namespace {

using rvv_inductor::F32;

float of_bits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Distance from the exact result in units of the last place of a float32 of its size; -1 for a
// wrong special value.
double ulp_error(float got, double exact) {
  const float nearest = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(got) ? 0 : -1;
  if (std::isinf(nearest)) return got == nearest ? 0 : -1;
  if (!std::isfinite(got)) return -1;
  if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(exact) ? 0 : -1;
  int exponent;
  std::frexp(exact, &exponent);
  return std::fabs(got - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

struct Function {
  const char* name;
  F32 (*ours)(F32);
  double (*exact)(double);
  float smallest;  // results nearer to 0 may be 0
};

const Function kFunctions[] = {
    {"exp", rvv_inductor::exp, std::exp, 0},
    {"exp_fast", rvv_inductor::exp_fast, std::exp, 0x1p-126f},
    {"log", rvv_inductor::log, std::log, 0},
    {"tanh", rvv_inductor::tanh, std::tanh, 0},
    {"erf", rvv_inductor::erf, std::erf, 0},
};

bool check(const Function& function) {
  double worst = 0;
  float place = 0;
  int64_t wrong = 0;
  const char* asked = std::getenv("EVERY");
  const int64_t every = asked == nullptr ? 1 : std::atoll(asked);
#pragma omp parallel for schedule(dynamic, 1 << 16) reduction(+ : wrong)
  for (int64_t block = 0; block < (int64_t{1} << 29); block += every) {
    F32 x;
    for (int i = 0; i < 8; ++i) x[i] = of_bits(static_cast<uint32_t>(block * 8 + i));
    const F32 y = function.ours(x);
    for (int i = 0; i < 8; ++i) {
      const double exact = function.exact(x[i]);
      if (y[i] == 0 && std::fabs(exact) < function.smallest) continue;
      const double error = ulp_error(y[i], exact);
      if (error < 0) {
        if (++wrong == 1)
          std::fprintf(stderr, "%s(%a) = %a, not %a\n", function.name, x[i], y[i], exact);
      } else if (error > worst) {
#pragma omp critical
        if (error > worst) {
          worst = error;
          place = x[i];
        }
      }
    }
  }
  std::printf("%-10s %.3f ULP at %a, %lld wrong\n", function.name, worst, place,
              static_cast<long long>(wrong));
  std::fflush(stdout);
  return wrong == 0;
}

}  // namespace

// Arguments: names of the functions to check; without any, all.
int main(int count, char** names) {
  bool right = true;
  for (const Function& function : kFunctions) {
    bool asked = count == 1;
    for (int i = 1; i < count; ++i) asked = asked || std::strcmp(names[i], function.name) == 0;
    if (asked) right = check(function) && right;
  }
  return right ? 0 : 1;
}
