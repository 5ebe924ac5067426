// The number types of operands.
#pragma once

namespace sgl_rvv {

enum class Type { kBf16, kFp16, kFp32, kInt8 };

[[nodiscard]] const char* name_of(Type type);

}  // namespace sgl_rvv
