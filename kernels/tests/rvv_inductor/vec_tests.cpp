// at::vec as VecRVV specialises it, held against scalar arithmetic and libm in double. Compiled as
// TorchInductor compiles what it generates (tests/kernels/rvv_inductor_programs.py), static, run at
// every VLEN.
//
// Prints one JSON object: {"vlen_bits", "cases", "failures", "worst_ulp": {function: ULP}};
// failures also on stderr.
#include <sys/mman.h>
#include <torch/csrc/inductor/cpp_prefix.h>
#include <unistd.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

using at::BFloat16;
using at::Half;
using at::vec::convert;
using at::vec::VecMask;
using at::vec::Vectorized;
using at::vec::VectorizedN;
using Floats = Vectorized<float>;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

// Of the 2^32 bit patterns one in so many is tried.
constexpr uint32_t kStride = 400009;

int64_t cases = 0, failures = 0;
std::map<std::string, double> worst_ulp;

// `what` is text, or a function that makes it: only failures need it.
template <typename What>
void expect(bool holds, const What& what) {
  ++cases;
  if (holds || ++failures > 50) return;
  if constexpr (std::is_invocable_v<What>) {
    std::fprintf(stderr, "wrong: %s\n", std::string(what()).c_str());
  } else {
    std::fprintf(stderr, "wrong: %s\n", what);
  }
}

// NaN equals NaN, and +0 does not equal -0.
template <typename T>
bool same(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b && std::signbit(a) == std::signbit(b);
  } else if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) {
    return a.x == b.x;
  } else {
    return a == b;
  }
}

std::string shown(double x) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", x);
  return text;
}

const std::vector<float> kSpecial = {0.0f,
                                     -0.0f,
                                     1.0f,
                                     -1.0f,
                                     0.5f,
                                     2.0f,
                                     kInf,
                                     -kInf,
                                     kNan,
                                     kDenormal,
                                     -kDenormal,
                                     0x1p-126f,
                                     -0x1p-126f,
                                     0x1.fffffep-127f,
                                     0x1.fffffep127f,
                                     -0x1.fffffep127f,
                                     88.0f,
                                     89.0f,
                                     88.72284f,
                                     -87.33655f,
                                     -87.5f,
                                     -103.9f,
                                     -104.0f,
                                     -105.0f,
                                     0.34657359f,
                                     0.70710677f,
                                     0.70710683f,
                                     1.4142135f,
                                     1.0000001f,
                                     0.99999994f,
                                     4.0f,
                                     3.9999998f,
                                     9.0f,
                                     10.0f,
                                     8388607.5f,
                                     8388608.0f,
                                     8388609.0f,
                                     0.49999997f,
                                     1.5f,
                                     2.5f,
                                     -0.5f,
                                     -1.5f,
                                     -2.5f,
                                     1e-4f,
                                     1e-20f,
                                     1e20f,
                                     65504.0f,
                                     65519.996f,
                                     65520.0f,
                                     6e-8f,
                                     2.9802322e-8f,
                                     2.9802326e-8f,
                                     6.1035156e-5f,
                                     6.097555e-5f,
                                     3.3895314e38f,
                                     3.3961775e38f};

// All special values and one of every `stride` bit patterns, padded to whole vectors.
std::vector<float> sample(uint32_t stride) {
  std::vector<float> values = kSpecial;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += stride) {
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  while (values.size() % 16 != 0) values.push_back(1.0f);
  return values;
}

// Values of which the pages before and after cannot be touched.
class Fenced {
 public:
  Fenced() : page_(sysconf(_SC_PAGESIZE)) {
    base_ =
        static_cast<char*>(mmap(nullptr, 3 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + page_, page_, PROT_READ | PROT_WRITE);
  }
  ~Fenced() { munmap(base_, 3 * page_); }
  // The last `bytes` bytes of the page.
  template <typename T>
  T* end(size_t bytes) {
    return reinterpret_cast<T*>(base_ + 2 * page_ - bytes);
  }

 private:
  size_t page_;
  char* base_;
};

template <typename T>
void test_memory(const std::string& type) {
  constexpr int n = Vectorized<T>::size();
  Fenced memory;
  for (int count = 0; count <= n; ++count) {
    T* from = memory.end<T>(count * sizeof(T));
    for (int i = 0; i < count; ++i) from[i] = static_cast<T>(static_cast<float>(i + 1));
    const auto loaded = Vectorized<T>::loadu(from, count);
    alignas(32) T all[n];
    loaded.store(all);
    for (int i = 0; i < n; ++i) {
      const T expected =
          i < count ? static_cast<T>(static_cast<float>(i + 1)) : static_cast<T>(0.0f);
      expect(same(all[i], expected), [&] { return type + " loadu of " + std::to_string(count); });
    }
    T fresh[n];
    std::memset(fresh, 0x5a, sizeof fresh);
    loaded.store(fresh, count);
    const auto* bytes = reinterpret_cast<const unsigned char*>(fresh);
    for (size_t i = count * sizeof(T); i < sizeof fresh; ++i)
      expect(bytes[i] == 0x5a, [&] { return type + " store beyond its count"; });
    expect(std::memcmp(fresh, all, count * sizeof(T)) == 0,
           [&] { return type + " store of " + std::to_string(count); });
    loaded.store(from, count);
  }
}

double ulp_error(float got, double exact) {
  const float nearest = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  if (std::isinf(nearest)) return got == nearest ? 0 : 1e9;
  if (!std::isfinite(got)) return 1e9;
  if (exact == 0) return got == 0 && std::signbit(got) == std::signbit(exact) ? 0 : 1e9;
  int exponent;
  std::frexp(exact, &exponent);
  return std::fabs(got - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

// `bound` is in ULP; where `zero_below` is given, results that are smaller may be 0.
template <typename Ours, typename Exact>
void test_function(const std::string& name, Ours ours, Exact exact, double bound,
                   float zero_below = 0) {
  double& worst = worst_ulp[name];
  const auto values = sample(kStride);
  for (size_t at = 0; at < values.size(); at += 8) {
    float got[8];
    ours(Floats::loadu(&values[at])).store(got);
    for (int i = 0; i < 8; ++i) {
      const double expected = exact(static_cast<double>(values[at + i]));
      if (got[i] == 0 && std::fabs(expected) < zero_below) continue;
      const double error = ulp_error(got[i], expected);
      worst = std::max(worst, error);
      expect(error <= bound, [&] {
        return name + "(" + shown(values[at + i]) + ") = " + shown(got[i]) + ", not " +
               shown(expected);
      });
    }
  }
}

// Exactly what the scalar operation gives, for all pairs of special values.
template <typename Ours, typename Scalar>
void test_pairs(const std::string& name, Ours ours, Scalar scalar) {
  for (float a : kSpecial) {
    for (float b : kSpecial) {
      float got[8];
      const float expected = scalar(a, b);
      ours(Floats(a), Floats(b)).store(got);
      for (float one : got)
        expect(same(one, expected),
               [&] { return name + "(" + shown(a) + ", " + shown(b) + ") = " + shown(one); });
    }
  }
}

void test_arithmetic() {
  test_pairs("+", [](auto a, auto b) { return a + b; }, [](float a, float b) { return a + b; });
  test_pairs("-", [](auto a, auto b) { return a - b; }, [](float a, float b) { return a - b; });
  test_pairs("*", [](auto a, auto b) { return a * b; }, [](float a, float b) { return a * b; });
  test_pairs("/", [](auto a, auto b) { return a / b; }, [](float a, float b) { return a / b; });
  test_pairs(
      "fmadd", [](auto a, auto b) { return fmadd(a, b, a); },
      [](float a, float b) { return std::fma(a, b, a); });
  test_pairs(
      "fmsub", [](auto a, auto b) { return fmsub(a, b, b); },
      [](float a, float b) { return std::fma(a, b, -b); });
  test_pairs(
      "copysign", [](auto a, auto b) { return a.copysign(b); },
      [](float a, float b) { return std::copysign(a, b); });
  // Equal numbers may be zeros of either sign.
  const auto larger = [](float a, float b) {
    return std::isnan(a) || std::isnan(b) ? kNan : a > b ? a : b;
  };
  const auto smaller = [](float a, float b) {
    return std::isnan(a) || std::isnan(b) ? kNan : a < b ? a : b;
  };
  test_pairs("maximum", [](auto a, auto b) { return maximum(a, b); }, larger);
  test_pairs("minimum", [](auto a, auto b) { return minimum(a, b); }, smaller);
  test_pairs(
      "clamp_min", [](auto a, auto b) { return clamp_min(a, b); },
      [](float a, float b) { return a < b ? b : a; });
  test_pairs(
      "clamp_max", [](auto a, auto b) { return clamp_max(a, b); },
      [](float a, float b) { return a > b ? b : a; });
  test_pairs(
      "blendv of <", [](auto a, auto b) { return Floats::blendv(a, b, a < b); },
      [](float a, float b) { return a < b ? b : a; });
  test_pairs(
      "blendv of !=", [](auto a, auto b) { return Floats::blendv(a, b, a != b); },
      [](float a, float b) { return a != b ? b : a; });
  test_pairs(
      "eq", [](auto a, auto b) { return a.eq(b); },
      [](float a, float b) { return a == b ? 1.0f : 0.0f; });
  test_pairs(
      "ge", [](auto a, auto b) { return a.ge(b); },
      [](float a, float b) { return a >= b ? 1.0f : 0.0f; });
  test_pairs(
      "gt", [](auto a, auto b) { return a.gt(b); },
      [](float a, float b) { return a > b ? 1.0f : 0.0f; });
  test_pairs(
      "le", [](auto a, auto b) { return a.le(b); },
      [](float a, float b) { return a <= b ? 1.0f : 0.0f; });
  test_pairs(
      "& of masks", [](auto a, auto b) { return Floats::blendv(a, b, (a <= b) & ~(a == b)); },
      [](float a, float b) { return a < b ? b : a; });
  test_pairs(
      "| of masks", [](auto a, auto b) { return Floats::blendv(a, b, a.isnan() | (a > b)); },
      [](float a, float b) { return std::isnan(a) || a > b ? b : a; });
}

void test_functions() {
  test_function(
      "exp", [](Floats x) { return x.exp(); }, [](double x) { return std::exp(x); }, 1.02);
  test_function(
      "exp_u20", [](Floats x) { return x.exp_u20(); }, [](double x) { return std::exp(x); }, 2.27,
      0x1p-126f);
  test_function(
      "fexp_u20", [](Floats x) { return x.fexp_u20(); }, [](double x) { return std::exp(x); }, 2.27,
      0x1p-126f);
  test_function(
      "log", [](Floats x) { return x.log(); }, [](double x) { return std::log(x); }, 0.87);
  test_function(
      "tanh", [](Floats x) { return x.tanh(); }, [](double x) { return std::tanh(x); }, 2.62);
  test_function(
      "erf", [](Floats x) { return x.erf(); }, [](double x) { return std::erf(x); }, 1.30);
  test_function(
      "sqrt", [](Floats x) { return x.sqrt(); }, [](double x) { return std::sqrt(x); }, 0.5);
  test_function(
      "rsqrt", [](Floats x) { return x.rsqrt(); }, [](double x) { return 1 / std::sqrt(x); }, 1.5);
  test_function(
      "reciprocal", [](Floats x) { return x.reciprocal(); }, [](double x) { return 1 / x; }, 0.5);
  test_function("neg", [](Floats x) { return x.neg(); }, [](double x) { return -x; }, 0);
  test_function("abs", [](Floats x) { return x.abs(); }, [](double x) { return std::fabs(x); }, 0);
  test_function(
      "floor", [](Floats x) { return x.floor(); }, [](double x) { return std::floor(x); }, 0);
  test_function(
      "ceil", [](Floats x) { return x.ceil(); }, [](double x) { return std::ceil(x); }, 0);
  test_function(
      "trunc", [](Floats x) { return x.trunc(); }, [](double x) { return std::trunc(x); }, 0);
  test_function(
      "round", [](Floats x) { return x.round(); }, [](double x) { return std::nearbyint(x); }, 0);
}

template <typename T>
void test_two_byte(const std::string& type) {
  for (uint32_t bits = 0; bits < 0x10000; bits += 16) {
    T from[16];
    float wide[16], first[8];
    for (uint32_t i = 0; i < 16; ++i) from[i].x = static_cast<uint16_t>(bits + i);
    const auto source = Vectorized<T>::loadu(from);
    convert<float, 2, T, 1>(VectorizedN<T, 1>(source)).store(wide);
    convert<float>(source).store(first);
    for (int i = 0; i < 16; ++i) {
      const float expected = static_cast<float>(from[i]);
      expect(same(wide[i], expected),
             [&] { return type + " " + std::to_string(bits + i) + " is " + shown(wide[i]); });
      if (i < 8)
        expect(same(first[i], expected),
               [&] { return type + " " + std::to_string(bits + i) + " of eight"; });
    }
    T negative[16];
    source.neg().store(negative);
    for (int i = 0; i < 16; ++i)
      expect(negative[i].x == (from[i].x ^ 0x8000), [&] { return type + " neg"; });
  }
  for (const auto values = sample(kStride); size_t at : c10::irange(values.size() / 16)) {
    const float* from = &values[16 * at];
    T narrow[16], first[16];
    convert<T, 1, float, 2>(VectorizedN<float, 2>::loadu(from)).store(narrow);
    convert<T>(Floats::loadu(from)).store(first);
    for (int i = 0; i < 16; ++i) {
      const T expected = static_cast<T>(from[i]);
      const bool nan = std::isnan(from[i]);
      const bool right =
          nan ? std::isnan(static_cast<float>(narrow[i])) : same(narrow[i], expected);
      expect(right,
             [&] { return type + " of " + shown(from[i]) + " is " + std::to_string(narrow[i].x); });
      if (i < 8)
        expect(nan || same(first[i], expected),
               [&] { return type + " of " + shown(from[i]) + ", of eight"; });
    }
  }
}

void test_integers() {
  const int32_t narrow[8] = {0, 1, -1, 7, -8, 65536, -2147483647, 2147483647};
  const auto v = Vectorized<int32_t>::loadu(narrow);
  const auto wide = convert<int64_t, 2, int32_t, 1>(VectorizedN<int32_t, 1>(v));
  int64_t wider[8];
  wide.store(wider);
  int32_t back[8];
  convert<int32_t, 1, int64_t, 2>(wide).store(back);
  float real[8], of_wide[8];
  convert<float>(v).store(real);
  convert<float, 1, int64_t, 2>(wide).store(of_wide);
  int32_t sums[8], larger[8], chosen[8];
  (v + v * Vectorized<int32_t>(1) - v).store(sums);
  maximum(v, Vectorized<int32_t>(5)).store(larger);
  Vectorized<int32_t>::blendv(v, Vectorized<int32_t>(9), v < Vectorized<int32_t>(0)).store(chosen);
  for (int i = 0; i < 8; ++i) {
    expect(wider[i] == narrow[i] && back[i] == narrow[i], "int32 and int64");
    expect(real[i] == static_cast<float>(narrow[i]) && of_wide[i] == real[i],
           "float of an integer");
    expect(sums[i] == narrow[i] && larger[i] == std::max(narrow[i], 5), "integer arithmetic");
    expect(chosen[i] == (narrow[i] < 0 ? 9 : narrow[i]), "blendv of integers");
  }
  const float fractions[8] = {0.9f, -0.9f, 1.5f, -1.5f, 2e9f, -2e9f, 0.0f, 100.25f};
  int32_t truncated[8];
  int64_t truncated_wide[8];
  convert<int32_t>(Floats::loadu(fractions)).store(truncated);
  convert<int64_t, 2, float, 1>(VectorizedN<float, 1>(Floats::loadu(fractions)))
      .store(truncated_wide);
  for (int i = 0; i < 8; ++i) {
    expect(truncated[i] == static_cast<int32_t>(fractions[i]), "int32 of a float");
    expect(truncated_wide[i] == static_cast<int64_t>(fractions[i]), "int64 of a float");
  }
}

void test_reductions() {
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = static_cast<float>((i * 7) % 16) - 4;
  const auto one = Floats::loadu(values);
  const auto two = VectorizedN<float, 2>::loadu(values);
  float sum = 0, sum_two = 0, most = -kInf, least = kInf;
  for (int i = 0; i < 16; ++i) {
    if (i < 8)
      sum += values[i], most = std::max(most, values[i]), least = std::min(least, values[i]);
    sum_two += values[i];
  }
  const auto add = [](Floats& x, Floats& y) { return x + y; };
  expect(at::vec::vec_reduce_all<float, 1>(add, one) == sum, "sum of eight");
  expect(at::vec::vec_reduce_all<float, 2>(add, two) == sum_two, "sum of sixteen");
  const auto larger = [](Floats& x, Floats& y) { return maximum(x, y); };
  const auto smaller = [](Floats& x, Floats& y) { return minimum(x, y); };
  expect(at::vec::vec_reduce_all<float, 1>(larger, one) == most, "largest of eight");
  expect(at::vec::vec_reduce_all<float, 1>(smaller, one) == least, "smallest of eight");
  for (int i = 0; i < 8; ++i) {
    float with_nan[8];
    std::memcpy(with_nan, values, sizeof with_nan);
    with_nan[i] = kNan;
    expect(std::isnan(at::vec::vec_reduce_all<float, 1>(larger, Floats::loadu(with_nan))),
           "largest with NaN");
  }
  for (int count = 0; count <= 8; ++count) {
    float set[8];
    Floats::set(Floats(1), Floats(2), count).store(set);
    for (int i = 0; i < 8; ++i)
      expect(set[i] == (i < count ? 2.0f : 1.0f),
             [&] { return "set of " + std::to_string(count); });
    BFloat16 halves[16];
    Vectorized<BFloat16>::set(Vectorized<BFloat16>(1), Vectorized<BFloat16>(2), count)
        .store(halves);
    for (int i = 0; i < 16; ++i) expect(halves[i] == (i < count ? 2.0f : 1.0f), "set of BF16");
  }
}

template <typename T, int N>
void test_masked_load(const std::string& type) {
  // Where the mask does not hold there is a page that cannot be read.
  Fenced memory;
  for (int count = 0; count <= 8; ++count) {
    bool holds[8];
    for (int i = 0; i < 8; ++i) holds[i] = i < count;
    T* from = memory.end<T>(count * sizeof(T));
    for (int i = 0; i < count; ++i) from[i] = static_cast<T>(static_cast<float>(i + 1));
    const auto mask = VecMask<float, 1>::from(static_cast<const bool*>(holds), 8);
    T got[VectorizedN<T, N>::size()];
    mask.template loadu<T, N>(from).store(got);
    for (int i = 0; i < 8; ++i) {
      const T expected =
          i < count ? static_cast<T>(static_cast<float>(i + 1)) : static_cast<T>(0.0f);
      expect(same(got[i], expected),
             [&] { return type + " masked load of " + std::to_string(count); });
    }
  }
}

void test_masks() {
  for (int pattern = 0; pattern < 256; ++pattern) {
    bool holds[16];
    for (int i = 0; i < 16; ++i) holds[i] = (pattern >> (i % 8)) & 1;
    const bool* from = holds;
    const auto mask = VecMask<float, 1>::from(from, 8);
    const auto both = VecMask<float, 2>::from(from, 16);
    const auto few = VecMask<float, 1>::from(from, 3);
    bool stored[16];
    VecMask<float, 2>(both).store(stored, 16);
    float ones[8];
    mask.to<float, 1>().store(ones);
    int64_t wide[8];
    VectorizedN<int64_t, 2>(mask.cast<int64_t, 2>()).store(wide);
    int32_t narrow[8];
    Vectorized<int32_t>(mask.cast<int32_t, 1>()).store(narrow);
    const auto back = mask.cast<int64_t, 2>().cast<float, 1>();
    for (int i = 0; i < 8; ++i) {
      expect(mask.is_masked(i) == holds[i] && back.is_masked(i) == holds[i], "mask of bools");
      expect(few.is_masked(i) == (i < 3 && holds[i]), "mask of three bools");
      expect(ones[i] == (holds[i] ? 1.0f : 0.0f), "mask to float");
      expect(wide[i] == (holds[i] ? -1 : 0) && narrow[i] == wide[i], "mask cast to integers");
      expect(both.is_masked(i + 8) == holds[i], "mask of sixteen bools");
      expect((~mask).is_masked(i) != holds[i], "negated mask");
    }
    expect(std::memcmp(stored, holds, 16) == 0, "mask to bools");
    expect(mask.all_zero() == (pattern == 0) && mask.all_masked() == (pattern == 255),
           "all of a mask");
    expect(both.all_zero() == (pattern == 0) && both.all_masked() == (pattern == 255),
           "all of two masks");
  }
  test_masked_load<float, 1>("float");
  test_masked_load<int32_t, 1>("int32");
  test_masked_load<BFloat16, 1>("BF16");
  test_masked_load<int8_t, 1>("int8");
  test_masked_load<int64_t, 2>("int64");
}

}  // namespace

int main() {
  test_memory<float>("float");
  test_memory<double>("double");
  test_memory<int64_t>("int64");
  test_memory<int32_t>("int32");
  test_memory<int16_t>("int16");
  test_memory<uint8_t>("uint8");
  test_memory<BFloat16>("BF16");
  test_memory<Half>("FP16");
  test_arithmetic();
  test_functions();
  test_two_byte<BFloat16>("BF16");
  test_two_byte<Half>("FP16");
  test_integers();
  test_reductions();
  test_masks();
  std::printf("{\"vlen_bits\": %d, \"cases\": %lld, \"failures\": %lld, \"worst_ulp\": {",
              static_cast<int>(__riscv_vsetvlmax_e8m1() * 8), static_cast<long long>(cases),
              static_cast<long long>(failures));
  const char* separator = "";
  for (const auto& [name, ulp] : worst_ulp) {
    std::printf("%s\"%s\": %.3f", separator, name.c_str(), ulp);
    separator = ", ";
  }
  std::printf("}}\n");
  return failures == 0 ? 0 : 1;
}
