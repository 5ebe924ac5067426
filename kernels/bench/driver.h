// The command line that both programs have.
#pragma once

#include "workload.h"

namespace kernel_bench {

// Runs a case and prints its line of JSON; `numbers` are those before the cases.
using RunCase = void(const Case& of, const Workload& work, const int64_t* numbers);

// --list; or `count` positive numbers, at most two, then one case or more, each given to `run`. A
// case that cannot be had prints {"case", "error"}. Returns the exit code: 2 where the command line
// is wrong.
[[nodiscard]] int drive(int argc, char** argv, const char* usage, int count, RunCase* run);

}  // namespace kernel_bench
