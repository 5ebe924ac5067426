// torch.ops.sgl_kernel: packed linears. Checks and operands here, arithmetic in core/.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <cstdint>
#include <optional>

#include "core/packed_layout.h"
#include "core/registry.h"
#include "torch/attestation.h"
#include "torch/linear_operands.h"
#include "torch/operands.h"
#include "torch/packed_weight.h"
#include "torch/parallel.h"

namespace sgl_rvv {
namespace {

using at::Tensor;

Tensor convert_weight_packed(const Tensor& weight) {
  RECORD_FUNCTION("sgl-kernel::convert_weight_packed", c10::ArrayRef<const c10::IValue>{});
  constexpr auto kOp = "convert_weight_packed";
  check_matrix_shape(kOp, "weight", weight);
  const at::ScalarType type = weight.scalar_type();
  TORCH_CHECK_TYPE(type == at::kBFloat16 || type == at::kHalf || type == at::kChar, kOp,
                   ": weight must be bfloat16, float16 or int8, but is ", type);
  return pack_weight(kOp, "weight", weight);
}

// The bias as the kernels want it, or an undefined tensor.
Tensor prepared_bias(const char* op, const std::optional<Tensor>& bias, int64_t n) {
  const Tensor source = float_bias(op, bias, n);
  if (!source.defined()) return {};
  Tensor prepared = scratch(bias_elements(n), Type::kFp32);
  prepare_bias(source.const_data_ptr<float>(), n, prepared.mutable_data_ptr<float>());
  return prepared;
}

Tensor prepared_left(const Tensor& mat1, const Kernel& kernel) {
  const Tensor source = with_adjacent(mat1);
  const int64_t m = source.size(0);
  const int64_t k = source.size(1);
  Tensor prepared = scratch(left_elements(m, k), kernel.prepared_left);
  const uint16_t* from = bits_of(source);
  void* to = prepared.mutable_data_ptr();
  const int64_t ld = source.stride(0);
  parallel_for(left_tiles(m), [=, &kernel](int64_t begin, int64_t end) {
    prepare_left(kernel.left, kernel.prepared_left, from, ld, m, k, begin, end, to);
  });
  return prepared;
}

// `n` < 0: as many output columns as the packed weight has, or the rows of an unpacked one.
Tensor linear(const char* op, const Tensor& mat1, const Tensor& mat2,
              const std::optional<Tensor>& bias, int64_t n, bool is_packed) {
  const Type type = check_matrix(op, "mat1", mat1);
  const int64_t m = mat1.size(0);
  const int64_t k = mat1.size(1);
  check_same_type(op, "mat2", mat2, mat1);
  const Tensor weight = packed_weight(op, mat2, is_packed, k);
  const int64_t columns = weight.size(0) * kBlockColumns;
  if (n < 0) n = is_packed ? columns : mat2.size(0);
  TORCH_CHECK_VALUE(packed_blocks(n) == weight.size(0), op, ": out_features = ", n,
                    " does not fit mat2, whose ", weight.size(0), " blocks hold ",
                    columns - kBlockColumns + 1, " to ", columns, " columns");
  TORCH_CHECK_VALUE(is_packed || n == mat2.size(0), op, ": out_features = ", n,
                    " but mat2 has N = ", mat2.size(0));
  const Tensor offsets = prepared_bias(op, bias, n);
  Tensor out = at::empty({m, n}, mat1.options());
  if (m == 0) return out;

  const Kernel& kernel = chosen_kernel(Operation::kPackedLinear, type, m);
  const Tensor left = prepared_left(mat1, kernel);
  const PackedLinear call = {m,
                             n,
                             k,
                             left.const_data_ptr(),
                             bits_of(weight),
                             offsets.defined() ? offsets.const_data_ptr<float>() : nullptr,
                             mutable_bits_of(out),
                             n};
  const auto entry = std::get<PackedLinearKernel*>(kernel.entry);
  parallel_for(weight.size(0), [&](int64_t begin, int64_t end) { entry(call, begin, end); });
  count_call(op, kernel.name);
  return out;
}

Tensor weight_packed_linear(const Tensor& mat1, const Tensor& mat2,
                            const std::optional<Tensor>& bias, bool is_packed) {
  RECORD_FUNCTION("sgl-kernel::weight_packed_linear", c10::ArrayRef<const c10::IValue>{});
  return linear("weight_packed_linear", mat1, mat2, bias, -1, is_packed);
}

Tensor weight_packed_linear_out(const Tensor& mat1, const Tensor& mat2,
                                const std::optional<Tensor>& bias, int64_t out_features,
                                bool is_packed, int64_t layout_version) {
  RECORD_FUNCTION("sgl-kernel::weight_packed_linear_out", c10::ArrayRef<const c10::IValue>{});
  TORCH_CHECK_VALUE(out_features > 0,
                    "weight_packed_linear_out: out_features must be positive, but is ",
                    out_features);
  TORCH_CHECK_VALUE(layout_version == kPackedLayoutVersion,
                    "weight_packed_linear_out: mat2 has layout_version ", layout_version,
                    ", but this library reads version ", kPackedLayoutVersion,
                    ": pack the weight again with convert_weight_packed");
  return linear("weight_packed_linear_out", mat1, mat2, bias, out_features, is_packed);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sgl_kernel, m) {
  m.def("convert_weight_packed(Tensor weight) -> Tensor");
  m.def("weight_packed_linear(Tensor mat1, Tensor mat2, Tensor? bias, bool is_packed) -> Tensor");
  m.def(
      "weight_packed_linear_out(Tensor mat1, Tensor mat2, Tensor? bias, int out_features, "
      "bool is_packed, int layout_version=1) -> Tensor");
}

TORCH_LIBRARY_IMPL(sgl_kernel, CPU, m) {
  m.impl("convert_weight_packed", &convert_weight_packed);
  m.impl("weight_packed_linear", &weight_packed_linear);
  m.impl("weight_packed_linear_out", &weight_packed_linear_out);
}

}  // namespace sgl_rvv
