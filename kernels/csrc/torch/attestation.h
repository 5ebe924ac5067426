// What ran: calls per operator and kernel since the last reset, so that a benchmark can prove which
// kernels it measured.
#pragma once

#include <cstddef>

namespace sgl_rvv {

// Both names must live forever (string literals, registry names).
void count_call(const char* op, const char* kernel);

}  // namespace sgl_rvv

// For Python's ctypes. The two that write JSON put at most `size` bytes and a terminating zero into
// `buffer` and return the length of the whole text: call again with a larger buffer where it did
// not fit.
extern "C" {
// {"<op>": {"<kernel>": calls}}
size_t sgl_kernel_attestation_json(char* buffer, size_t size);
void sgl_kernel_reset_attestation();
// {"layout_version", "rvv", "vlen_bits", "kernels": [{"name", "operation", "requirement",
// "available", ...}]}
size_t sgl_kernel_describe_json(char* buffer, size_t size);
}
