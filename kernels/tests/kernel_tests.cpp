// Holds every kernel of the registry that this CPU can run against float64 references.
//
//   kernel_tests                 runs everything; exit code 1 when something is wrong
//   kernel_tests --list          one line a kernel: name, what it needs, available or unavailable
//   kernel_tests --kernel NAME   only that kernel
//   kernel_tests --zvfbfwma ...  takes it that the machine has Zvfbfwma, whatever hwprobe says
//
// The last line is a JSON object: {"vlen_bits", "rvv", "zvfh", "cases", "failures", "hashes":
// {group: hash}, "kernels": {name: cases}, "dispatch": {group: {rows: name}}}.

#include <cstdio>
#include <cstring>
#include <string>

#include "harness.h"
#include "verdict.h"

namespace sgl_rvv::tests {

// One function a test file.
void test_packed_linear();
void test_row_major_linear();
void test_attention();
void test_int8_attention();
void test_kv_store();
void test_int8_linear();
void test_token_quant();
void test_norm();
void test_gated_activation();
void test_rotary_embedding();

namespace {

using Test = void();
constexpr Test* kTests[] = {
    test_packed_linear,    test_row_major_linear, test_attention,   test_int8_attention,
    test_kv_store,         test_int8_linear,      test_token_quant, test_norm,
    test_gated_activation, test_rotary_embedding,
};

void list() {
  for (const Kernel& kernel : kernels()) {
    std::printf("%s %s %s\n", kernel.name, name_of_extensions(kernel.needs),
                cpu_features().has(kernel.needs) ? "available" : "unavailable");
  }
}

}  // namespace
}  // namespace sgl_rvv::tests

int main(int argc, char** argv) {
  using namespace sgl_rvv::tests;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--zvfbfwma") == 0) {
      sgl_rvv::assume_extensions(sgl_rvv::kZvfbfwma);
      continue;
    }
    if (std::strcmp(argv[i], "--list") == 0) {
      list();
      return 0;
    }
    if (std::strcmp(argv[i], "--kernel") == 0 && i + 1 < argc) {
      restrict_to(argv[++i]);
    } else {
      std::fprintf(stderr, "usage: kernel_tests [--zvfbfwma] [--list] [--kernel NAME]\n");
      return 2;
    }
  }
  catch_fences();
  for (Test* test : kTests) test();
  expect_all_tested();
  return print_verdict();
}
