// The one list of kernels. Dispatch, tests, benchmarks, the cycle model and attestation all walk
// it, so that a kernel can neither go untested nor run under another's name.
//
// Each family of kernels has a list of its own (linear_kernels.cpp, attention_kernels.cpp);
// kernels() is all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "core/attention.h"
#include "core/cpu.h"
#include "core/gated_activation.h"
#include "core/norm.h"
#include "core/packed_linear.h"
#include "core/rotary.h"
#include "core/row_major_linear.h"
#include "core/types.h"

namespace sgl_rvv {

enum class Operation {
  kPackedLinear,
  kRowMajorLinear,
  kDecodeAttention,
  kExtendAttention,
  kNorm,
  kGatedActivation,
  kRotaryEmbedding
};

enum class Technique {
  kNPair,
  kNPairBlocked,
  kWidening,
  kWideningBlocked,
  kAlongK,
  kTiled,
  kLanes,
  kPortable
};

struct Tile {
  int64_t rows;     // exactly this many rows of the left operand (queries); 0: any number
  int64_t columns;  // output columns (keys) of one block
};

// What computes it, by operation; the alternatives are in the order of Operation.
using Entry =
    std::variant<PackedLinearKernel*, RowMajorLinearKernel*, DecodeAttentionKernel*,
                 ExtendAttentionKernel*, NormKernel*, GatedActivationKernel*, RotaryKernel*>;

struct Kernel {
  const char* name;  // what attestation reports; ends in _rvv where it needs V, else in _portable
  Type left;         // activations, queries
  Type right;        // weight, KV cache
  Type output;
  Type prepared_left;  // what the left operand must be prepared as (linear)
  Tile tile;
  Technique technique;
  Extensions needs;
  Entry entry;

  [[nodiscard]] Operation operation() const { return static_cast<Operation>(entry.index()); }
};

struct KernelList {
  const Kernel* first;
  size_t count;
  [[nodiscard]] const Kernel* begin() const { return first; }
  [[nodiscard]] const Kernel* end() const { return first + count; }
};

// One family each, in the order of preference within an operation.
[[nodiscard]] KernelList linear_kernels();
[[nodiscard]] KernelList attention_kernels();
[[nodiscard]] KernelList norm_kernels();
[[nodiscard]] KernelList gated_activation_kernels();
[[nodiscard]] KernelList rotary_kernels();

// Every kernel that this library was built with.
[[nodiscard]] KernelList kernels();

[[nodiscard]] const char* name_of(Operation operation);

[[nodiscard]] const char* name_of(Technique technique);

// Whether `kernel` can compute `rows` rows.
[[nodiscard]] bool accepts_rows(const Kernel& kernel, int64_t rows);

// The first kernel of the list that computes `operation` on operands of `type` for `rows` rows and
// that this CPU can run; null where there is none (a portable kernel closes every list).
[[nodiscard]] const Kernel* select_kernel(Operation operation, Type type, int64_t rows,
                                          const CpuFeatures& cpu);

}  // namespace sgl_rvv
