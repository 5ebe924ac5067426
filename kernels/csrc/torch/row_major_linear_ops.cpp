// torch.ops.sgl_kernel: linears on the weight as it is.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/registry.h"
#include "torch/attestation.h"
#include "torch/linear_operands.h"
#include "torch/operands.h"
#include "torch/parallel.h"

namespace sgl_rvv {
namespace {

using at::Tensor;

// Columns that one thread takes at once: kernels work on four at a time.
constexpr int64_t kColumns = 4;

Tensor prepared_left(const Tensor& mat1, const Kernel& kernel) {
  const Tensor source = with_adjacent(mat1);
  const int64_t m = source.size(0);
  const int64_t k = source.size(1);
  Tensor prepared = scratch(m * row_major_depth(k), kernel.prepared_left);
  const uint16_t* from = bits_of(source);
  void* to = prepared.mutable_data_ptr();
  const int64_t ld = source.stride(0);
  parallel_for(m, [=, &kernel](int64_t begin, int64_t end) {
    prepare_row_major_left(kernel.left, kernel.prepared_left, from, ld, k, begin, end, to);
  });
  return prepared;
}

Tensor linear_rowmajor(const Tensor& mat1, const Tensor& weight,
                       const std::optional<Tensor>& bias) {
  constexpr auto kOp = "linear_rowmajor";
  RECORD_FUNCTION("sgl-kernel::linear_rowmajor", c10::ArrayRef<const c10::IValue>{});
  const Type type = check_matrix(kOp, "mat1", mat1);
  static_cast<void>(check_matrix(kOp, "weight", weight));
  check_same_type(kOp, "weight", weight, mat1);
  const int64_t m = mat1.size(0);
  const int64_t n = weight.size(0);
  const int64_t k = mat1.size(1);
  check_depth(kOp, "weight", weight.size(1), k);
  const Tensor offsets = float_bias(kOp, bias, n);
  Tensor out = at::empty({m, n}, mat1.options());
  if (m == 0 || n == 0) return out;

  const Kernel& kernel = chosen_kernel(Operation::kRowMajorLinear, type, m);
  const Tensor rows = with_adjacent(weight);
  const Tensor left = prepared_left(mat1, kernel);
  const RowMajorLinear call = {m,
                               n,
                               k,
                               left.const_data_ptr(),
                               bits_of(rows),
                               rows.stride(0),
                               offsets.defined() ? offsets.const_data_ptr<float>() : nullptr,
                               mutable_bits_of(out),
                               n};
  const auto entry = std::get<RowMajorLinearKernel*>(kernel.entry);
  parallel_for((n + kColumns - 1) / kColumns, [&](int64_t begin, int64_t end) {
    entry(call, begin * kColumns, std::min(end * kColumns, n));
  });
  count_call(kOp, kernel.name);
  return out;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sgl_kernel, m) {
  m.def("linear_rowmajor(Tensor mat1, Tensor weight, Tensor? bias) -> Tensor");
}

TORCH_LIBRARY_IMPL(sgl_kernel, CPU, m) {
  m.impl("linear_rowmajor", &linear_rowmajor);
}

}  // namespace sgl_rvv
