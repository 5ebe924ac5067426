// Which kernel a case runs.
#pragma once

#include "core/registry.h"
#include "workload.h"

namespace kernel_bench {

// The case's `type`, BF16 where it names none.
[[nodiscard]] sgl_rvv::Type type_of(const Case& of);

// What the torch operators choose on this CPU for `rows` rows, or what the case's `kernel` names.
// Throws std::invalid_argument where that cannot be had.
[[nodiscard]] const sgl_rvv::Kernel* kernel_of(const Case& of, sgl_rvv::Operation operation,
                                               sgl_rvv::Type type, int64_t rows);

}  // namespace kernel_bench
