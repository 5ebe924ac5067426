// The one list of kernels. Dispatch, tests, benchmarks, the cycle model and attestation all walk
// it, so that a kernel can neither go untested nor run under another's name.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/cpu.h"
#include "core/packed_linear.h"

namespace sgl_rvv {

enum class Operation { kPackedLinear };
enum class Type { kBf16 };
enum class Technique { kNPair, kNPairBlocked, kPortable };
enum class Requirement { kNone, kRvv };

struct Tile {
  int64_t rows;     // exactly this many rows of the left operand; 0: any number
  int64_t columns;  // output columns of one block
  bool whole_k;     // one pass over K, the weight read once
};

struct Kernel {
  const char* name;  // what attestation reports
  Operation operation;
  Type left;
  Type right;
  Type output;
  Tile tile;
  Technique technique;
  Requirement requirement;
  PackedLinearKernel* packed_linear;  // set where operation == kPackedLinear; other operations add
                                      // their own pointer
};

struct KernelList {
  const Kernel* first;
  size_t count;
  [[nodiscard]] const Kernel* begin() const { return first; }
  [[nodiscard]] const Kernel* end() const { return first + count; }
};

// Every kernel that this library was built with, in the order of preference within an operation.
[[nodiscard]] KernelList kernels();

[[nodiscard]] const char* name_of(Operation operation);
[[nodiscard]] const char* name_of(Type type);
[[nodiscard]] const char* name_of(Technique technique);
[[nodiscard]] const char* name_of(Requirement requirement);

[[nodiscard]] bool satisfied(Requirement requirement, const CpuFeatures& cpu);

// Whether `kernel` can compute `rows` rows.
[[nodiscard]] bool accepts_rows(const Kernel& kernel, int64_t rows);

// The first kernel of the list that this CPU can run for `rows` rows; never null (a portable kernel
// closes every list).
[[nodiscard]] const Kernel* select_packed_linear(int64_t rows, const CpuFeatures& cpu);

}  // namespace sgl_rvv
