#include "torch/packed_weight.h"

#include <ATen/ops/empty.h>

#include "core/pack_weight.h"
#include "core/packed_layout.h"
#include "torch/attestation.h"
#include "torch/linear_operands.h"
#include "torch/operands.h"
#include "torch/parallel.h"

namespace sgl_rvv {

using at::Tensor;

Tensor pack_weight(const char* op, const char* name, const Tensor& weight) {
  TORCH_CHECK_VALUE(weight.size(0) > 0, op, ": ", name, " must not be empty, but has shape ",
                    weight.sizes());
  const Tensor source = with_adjacent(weight);
  const int64_t n = source.size(0);
  const int64_t k = source.size(1);
  const int64_t blocks = packed_blocks(n);
  Tensor packed = at::empty({blocks, k, kBlockColumns}, source.options());
  const int64_t ld = source.stride(0);
  const bool int8 = weight.scalar_type() == at::kChar;
  const void* from = source.const_data_ptr();
  void* to = packed.mutable_data_ptr();
  parallel_for(blocks, [=](int64_t begin, int64_t end) {
    if (int8) {
      pack_weight_8(static_cast<const int8_t*>(from), ld, n, k, begin, end,
                    static_cast<int8_t*>(to));
    } else {
      pack_weight_16(static_cast<const uint16_t*>(from), ld, n, k, begin, end,
                     static_cast<uint16_t*>(to));
    }
  });
  // Also where a linear packs by itself.
  count_call("convert_weight_packed", int8 ? "pack_weight_8" : "pack_weight_16");
  return packed;
}

Tensor packed_weight(const char* op, const Tensor& mat2, bool is_packed, int64_t depth_of_mat1) {
  if (!is_packed) {
    TORCH_CHECK_VALUE(mat2.dim() == 2, op, ": an unpacked mat2 must have shape [N, K], but has ",
                      mat2.sizes());
    check_depth(op, "mat2", mat2.size(1), depth_of_mat1);
    return pack_weight(op, "mat2", mat2);
  }
  TORCH_CHECK_VALUE(mat2.dim() == 3 && mat2.size(2) == kBlockColumns, op,
                    ": a packed mat2 must have shape [ceil(N / 32), K, 32], but has ",
                    mat2.sizes());
  TORCH_CHECK_VALUE(mat2.size(0) > 0, op, ": mat2 must not be empty, but has shape ", mat2.sizes());
  check_depth(op, "mat2", mat2.size(1), depth_of_mat1);
  Tensor weight = mat2.contiguous();
  if (reinterpret_cast<uintptr_t>(weight.const_data_ptr()) % alignof(uint32_t) != 0) {
    weight = weight.clone();
  }
  return weight;
}

}  // namespace sgl_rvv
