#include "core/registry.h"

namespace sgl_rvv {

KernelList attention_kernels() {
  return {nullptr, 0};
}

}  // namespace sgl_rvv
