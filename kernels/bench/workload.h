// What the model and the benchmark call: one operator with operands of a given shape.
//
// A case is written as text, "packed_linear:type=bf16,m=1,n=2048,k=2048". The operators are those
// of the registry, chosen as the torch operators choose them; `kernel=NAME` forces one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace kernel_bench {

struct Case {
  std::string text;
  std::string operation;
  std::map<std::string, std::string> values;
};

// Splits a case; throws std::invalid_argument that says what is wrong.
[[nodiscard]] Case parse_case(const std::string& text);

// The value of `key` as a positive number; throws std::invalid_argument where it is none.
[[nodiscard]] int64_t number(const Case& of, const std::string& key);
[[nodiscard]] int64_t number_or(const Case& of, const std::string& key, int64_t otherwise);
[[nodiscard]] std::string word_or(const Case& of, const std::string& key,
                                  const std::string& otherwise);

struct Workload {
  std::string kernel;          // its name in the registry
  int64_t macs = 0;            // multiply-adds of one call
  std::function<void()> call;  // the whole operator: preparing the operands and the kernel
  int64_t elements = 0;        // that one call writes, where multiply-adds are not what it is about
};

// Throws std::invalid_argument where the case or the kernel cannot be had on this CPU.
[[nodiscard]] Workload make_workload(const Case& of);

// Prints one line a kernel of the registry: name, operation, type of the left operand, "available"
// or "unavailable".
void list_kernels();

}  // namespace kernel_bench
