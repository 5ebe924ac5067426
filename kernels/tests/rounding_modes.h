// Every rounding mode that a thread may be in when it calls a kernel.
#pragma once

#include <functional>
#include <string>

namespace sgl_rvv::tests {

// Calls `run` under each mode of floating-point (frm) and, where there is V, of fixed-point (vxrm)
// arithmetic, named for messages. The modes are as before afterwards, and `run` must leave them as
// they are: `run` itself should compute nothing but what it tests.
void under_every_rounding_mode(const std::function<void(const std::string& mode)>& run);

}  // namespace sgl_rvv::tests
