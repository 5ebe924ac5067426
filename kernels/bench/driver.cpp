#include "driver.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>

namespace kernel_bench {
namespace {

void run_case(const Case& of, const int64_t* numbers, RunCase* run) {
  Workload work;
  try {
    work = make_workload(of);
  } catch (const std::invalid_argument& error) {
    std::printf("{\"case\": \"%s\", \"error\": \"%s\"}\n", of.text.c_str(), error.what());
    return;
  }
  run(of, work, numbers);
  std::fflush(stdout);
}

}  // namespace

int drive(int argc, char** argv, const char* usage, int count, RunCase* run) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    list_kernels();
    return 0;
  }
  int64_t numbers[2] = {};
  bool right = argc > count + 1;
  for (int i = 0; right && i < count; ++i) {
    numbers[i] = std::strtoll(argv[1 + i], nullptr, 10);
    right = numbers[i] > 0;
  }
  if (!right) {
    std::fprintf(stderr, "usage: %s\n", usage);
    return 2;
  }
  try {
    for (int i = count + 1; i < argc; ++i) run_case(parse_case(argv[i]), numbers, run);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

}  // namespace kernel_bench
