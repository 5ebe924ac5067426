// One function an operation of the registry.
#pragma once

#include "workload.h"

namespace kernel_bench {

[[nodiscard]] Workload packed_linear(const Case& of);
[[nodiscard]] Workload row_major_linear(const Case& of);
[[nodiscard]] Workload decode_attention(const Case& of);
[[nodiscard]] Workload extend_attention(const Case& of);
[[nodiscard]] Workload decode_attention_int8(const Case& of);
[[nodiscard]] Workload extend_attention_int8(const Case& of);
[[nodiscard]] Workload int8_linear(const Case& of);
[[nodiscard]] Workload token_quant(const Case& of);
[[nodiscard]] Workload norm(const Case& of);
[[nodiscard]] Workload gated_activation(const Case& of);
[[nodiscard]] Workload rotary_embedding(const Case& of);

}  // namespace kernel_bench
