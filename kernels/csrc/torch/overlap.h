// Whether what is written is the same memory as something else.
#pragma once

#include <ATen/core/Tensor.h>

namespace sgl_rvv {

// ValueError where two elements of `written` may be one place in memory.
void check_no_self_overlap(const char* op, const char* name, const at::Tensor& written);

// ValueError where `written` and `other` may share memory. Views that lie in between each other's
// rows do not (queries, keys and values of one buffer); views whose distances have no common
// measure that shows it count as sharing.
void check_no_overlap(const char* op, const char* name, const at::Tensor& written,
                      const char* other_name, const at::Tensor& other);

}  // namespace sgl_rvv
