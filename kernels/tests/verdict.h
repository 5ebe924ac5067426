// The part of the harness that only main() uses.
#pragma once

#include <string>

namespace sgl_rvv::tests {

// Only this kernel is run.
void restrict_to(const std::string& kernel);

// From here on, touching a fence ends the program with the name of the case.
void catch_fences();

// Fails for each kernel that could have run and that no case ran, and where none has the name that
// was asked for.
void expect_all_tested();

// Prints the JSON line; returns the exit code.
[[nodiscard]] int print_verdict();

}  // namespace sgl_rvv::tests
