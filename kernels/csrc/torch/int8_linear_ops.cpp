// torch.ops.sgl_kernel: W8A8. Checks and operands here, arithmetic in core/.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>

#include "core/int8_linear.h"
#include "core/packed_layout.h"
#include "core/registry.h"
#include "core/token_quant.h"
#include "torch/attestation.h"
#include "torch/linear_operands.h"
#include "torch/operands.h"
#include "torch/packed_weight.h"
#include "torch/parallel.h"

namespace sgl_rvv {
namespace {

using at::Tensor;

// What activations, and outputs, may be.
Type check_floating(const char* op, const char* name, at::ScalarType type) {
  TORCH_CHECK_TYPE(type == at::kBFloat16 || type == at::kHalf || type == at::kFloat, op, ": ", name,
                   " must be bfloat16, float16 or float32, but is ", type);
  if (type == at::kFloat) return Type::kFp32;
  return type == at::kBFloat16 ? Type::kBf16 : Type::kFp16;
}

void check_int8(const char* op, const char* name, const Tensor& tensor) {
  check_cpu(op, name, tensor);
  TORCH_CHECK_TYPE(tensor.scalar_type() == at::kChar, op, ": ", name, " must be int8, but is ",
                   tensor.scalar_type());
}

// Scales [count] or [count, 1] of FP32, contiguous.
Tensor checked_scales(const char* op, const char* name, const Tensor& scales, int64_t count) {
  check_cpu(op, name, scales);
  TORCH_CHECK_TYPE(scales.scalar_type() == at::kFloat, op, ": ", name, " must be float32, but is ",
                   scales.scalar_type());
  const bool column = scales.dim() == 2 && scales.size(1) == 1;
  TORCH_CHECK_VALUE((scales.dim() == 1 || column) && scales.size(0) == count, op, ": ", name,
                    " must have shape [", count, "] or [", count, ", 1], but has ", scales.sizes());
  return scales.contiguous();
}

// Where activations come from: codes, or what has yet to be quantised into `codes`.
struct Activations {
  const Kernel* quant;  // null where they are codes
  TokenQuant rows;      // of `quant`
  const int8_t* codes;
  int64_t stride;  // of `codes`
};

// Prepares tiles [begin, end) of the activations for the linear.
void prepare(const Activations& from, int64_t m, int64_t k, int64_t begin, int64_t end,
             int8_t* prepared, Int8Run* runs) {
  const int64_t tile_rows = int8_tile_rows(m);
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t top = tile * tile_rows;
    if (from.quant != nullptr) {
      (*std::get<TokenQuantKernel*>(from.quant->entry))(from.rows, top,
                                                        std::min(top + tile_rows, m));
    }
    prepare_int8_left(from.codes + top * from.stride, from.stride, m, k, tile, prepared, runs);
  }
}

// `left_scales` [m], which quantisation may have yet to write. One parallel region: preparing the
// activations, a barrier, multiplying.
Tensor scaled_mm(const char* op, const Activations& from, int64_t m, int64_t k,
                 const float* left_scales, const Tensor& mat2, const Tensor& scales2,
                 const std::optional<Tensor>& bias, at::ScalarType out_dtype, bool is_packed) {
  const Type out_type = check_floating(op, "out_dtype", out_dtype);
  TORCH_CHECK_VALUE(k <= kInt8LargestDepth, op, ": mat1 has K = ", k, ", but int32 holds sums of ",
                    kInt8LargestDepth, " products and no more");
  check_int8(op, "mat2", mat2);
  const Tensor weight = packed_weight(op, mat2, is_packed, k);
  // A packed weight does not carry N; its scales do.
  const int64_t n = is_packed && scales2.dim() > 0 ? scales2.size(0) : mat2.size(0);
  const Tensor right_scales = checked_scales(op, "scales2", scales2, n);
  const int64_t columns = weight.size(0) * kBlockColumns;
  TORCH_CHECK_VALUE(packed_blocks(n) == weight.size(0), op, ": scales2 has ", n,
                    " scales, but the ", weight.size(0), " blocks of mat2 hold ",
                    columns - kBlockColumns + 1, " to ", columns, " columns");
  const Tensor offsets = float_bias(op, bias, n);
  Tensor out = at::empty({m, n}, mat2.options().dtype(out_dtype));
  if (m == 0) return out;

  const Kernel& kernel = chosen_kernel(Operation::kInt8Linear, Type::kInt8, m);
  Tensor prepared = scratch(int8_codes(m, k), Type::kInt8);
  Tensor runs = scratch(int8_runs(m, k) * static_cast<int64_t>(sizeof(Int8Run)), Type::kInt8);
  auto* codes = prepared.mutable_data_ptr<int8_t>();
  auto* runs_of_codes = static_cast<Int8Run*>(runs.mutable_data_ptr());
  const Int8Linear call = {m,
                           n,
                           k,
                           codes,
                           runs_of_codes,
                           left_scales,
                           weight.const_data_ptr<int8_t>(),
                           right_scales.const_data_ptr<float>(),
                           offsets.defined() ? offsets.const_data_ptr<float>() : nullptr,
                           out.mutable_data_ptr(),
                           out_type,
                           n};
  const auto entry = std::get<Int8LinearKernel*>(kernel.entry);
  parallel_for_then(
      int8_tiles(m),
      [&](int64_t begin, int64_t end) { prepare(from, m, k, begin, end, codes, runs_of_codes); },
      weight.size(0), [&](int64_t begin, int64_t end) { entry(call, begin, end); });
  count_call(op, kernel.name);
  return out;
}

constexpr auto kQuant = "per_token_quant_int8_cpu";

// Codes and scales of A: where they go and how they get there.
struct Quantisation {
  Tensor source, codes, scales;
  const Kernel* kernel;

  [[nodiscard]] TokenQuant call() const {
    return {source.size(1), source.const_data_ptr(), source.stride(0),
            codes.mutable_data_ptr<int8_t>(), scales.mutable_data_ptr<float>()};
  }
};

Quantisation quantisation_of(const char* op, const char* name, const Tensor& rows) {
  check_matrix_shape(op, name, rows);
  const Type type = check_floating(op, name, rows.scalar_type());
  const int64_t m = rows.size(0);
  return {with_adjacent(rows), at::empty({m, rows.size(1)}, rows.options().dtype(at::kChar)),
          at::empty({m}, rows.options().dtype(at::kFloat)),
          &chosen_kernel(Operation::kTokenQuant, type, m)};
}

std::tuple<Tensor, Tensor> per_token_quant_int8_cpu(const Tensor& A) {
  RECORD_FUNCTION("sgl-kernel::per_token_quant_int8_cpu", c10::ArrayRef<const c10::IValue>{});
  const Quantisation quantisation = quantisation_of(kQuant, "A", A);
  const TokenQuant call = quantisation.call();
  const auto entry = std::get<TokenQuantKernel*>(quantisation.kernel->entry);
  parallel_for(A.size(0), [&](int64_t begin, int64_t end) { entry(call, begin, end); });
  count_call(kQuant, quantisation.kernel->name);
  return {quantisation.codes, quantisation.scales};
}

Tensor int8_scaled_mm_cpu(const Tensor& mat1, const Tensor& mat2, const Tensor& scales1,
                          const Tensor& scales2, const std::optional<Tensor>& bias,
                          at::ScalarType out_dtype, bool is_packed) {
  constexpr auto kOp = "int8_scaled_mm_cpu";
  RECORD_FUNCTION("sgl-kernel::int8_scaled_mm_cpu", c10::ArrayRef<const c10::IValue>{});
  check_matrix_shape(kOp, "mat1", mat1);
  check_int8(kOp, "mat1", mat1);
  const int64_t m = mat1.size(0);
  const int64_t k = mat1.size(1);
  const Tensor left_scales = checked_scales(kOp, "scales1", scales1, m);
  const Tensor rows = with_adjacent(mat1);
  const Activations from = {nullptr, {}, rows.const_data_ptr<int8_t>(), rows.stride(0)};
  return scaled_mm(kOp, from, m, k, left_scales.const_data_ptr<float>(), mat2, scales2, bias,
                   out_dtype, is_packed);
}

Tensor int8_scaled_mm_with_quant(const Tensor& mat1, const Tensor& mat2, const Tensor& scales2,
                                 const std::optional<Tensor>& bias, at::ScalarType out_dtype,
                                 bool is_packed) {
  constexpr auto kOp = "int8_scaled_mm_with_quant";
  RECORD_FUNCTION("sgl-kernel::int8_scaled_mm_with_quant", c10::ArrayRef<const c10::IValue>{});
  const Quantisation quantisation = quantisation_of(kOp, "mat1", mat1);
  const TokenQuant rows = quantisation.call();
  const int64_t m = mat1.size(0);
  const int64_t k = mat1.size(1);
  const Activations from = {quantisation.kernel, rows, rows.codes, k};
  Tensor out = scaled_mm(kOp, from, m, k, rows.scales, mat2, scales2, bias, out_dtype, is_packed);
  if (m > 0) count_call(kQuant, quantisation.kernel->name);
  return out;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sgl_kernel, m) {
  m.def("per_token_quant_int8_cpu(Tensor A) -> (Tensor, Tensor)");
  m.def(
      "int8_scaled_mm_cpu(Tensor mat1, Tensor mat2, Tensor scales1, Tensor scales2, Tensor? bias, "
      "ScalarType out_dtype, bool is_packed) -> Tensor");
  m.def(
      "int8_scaled_mm_with_quant(Tensor mat1, Tensor mat2, Tensor scales2, Tensor? bias, "
      "ScalarType out_dtype, bool is_packed) -> Tensor");
}

TORCH_LIBRARY_IMPL(sgl_kernel, CPU, m) {
  m.impl("per_token_quant_int8_cpu", &per_token_quant_int8_cpu);
  m.impl("int8_scaled_mm_cpu", &int8_scaled_mm_cpu);
  m.impl("int8_scaled_mm_with_quant", &int8_scaled_mm_with_quant);
}

}  // namespace sgl_rvv
