// torch.ops.sgl_kernel: gated activations and rotary embeddings.

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <cstdint>
#include <tuple>

#include "core/gated_activation.h"
#include "core/registry.h"
#include "core/rotary.h"
#include "torch/attestation.h"
#include "torch/operands.h"
#include "torch/parallel.h"
#include "torch/row_operands.h"

namespace sgl_rvv {
namespace {

using at::Tensor;

Tensor gated(const char* op, Activation activation, const Tensor& input) {
  const Type type = check_row_operand(op, "input", input);
  TORCH_CHECK_VALUE(input.size(-1) % 2 == 0, op,
                    ": input must have an even last dimension, but has shape ", input.sizes());
  const int64_t columns = input.size(-1) / 2;
  auto sizes = input.sizes().vec();
  sizes.back() = columns;
  Tensor out = at::empty(sizes, input.options());
  if (out.numel() == 0) return out;
  const RowShape shape = row_shape({&input});
  const Kernel& kernel = chosen_kernel(Operation::kGatedActivation, type, shape.rows);
  const auto entry = std::get<GatedActivationKernel*>(kernel.entry);
  const auto bytes = static_cast<int64_t>(input.element_size());
  for (int64_t index = 0; index * shape.inner < shape.rows; ++index) {
    const RowStretch in = row_stretch(input, shape, index);
    const auto* gate = static_cast<const char*>(input.const_data_ptr()) + in.offset * bytes;
    const GatedActivation call = {
        activation,
        columns,
        gate,
        gate + columns * bytes,
        in.stride,
        static_cast<char*>(out.mutable_data_ptr()) + index * shape.inner * columns * bytes,
        columns};
    parallel_for(shape.inner * activation_blocks(columns),
                 [&](int64_t begin, int64_t end) { entry(call, begin, end); });
  }
  count_call(op, kernel.name);
  return out;
}

Tensor silu_and_mul_cpu(const Tensor& input) {
  RECORD_FUNCTION("sgl-kernel::silu_and_mul_cpu", c10::ArrayRef<const c10::IValue>{});
  return gated("silu_and_mul_cpu", Activation::kSilu, input);
}

Tensor gelu_and_mul_cpu(const Tensor& input) {
  RECORD_FUNCTION("sgl-kernel::gelu_and_mul_cpu", c10::ArrayRef<const c10::IValue>{});
  return gated("gelu_and_mul_cpu", Activation::kGelu, input);
}

Tensor gelu_tanh_and_mul_cpu(const Tensor& input) {
  RECORD_FUNCTION("sgl-kernel::gelu_tanh_and_mul_cpu", c10::ArrayRef<const c10::IValue>{});
  return gated("gelu_tanh_and_mul_cpu", Activation::kGeluTanh, input);
}

// [tokens, heads * head], [tokens, heads, head] or [batch, tokens, heads, head] as
// [tokens, heads, head], a view where that can be had.
Tensor heads_of(const char* op, const char* name, const Tensor& tensor, int64_t tokens,
                int64_t head) {
  TORCH_CHECK_VALUE(tensor.dim() >= 2 && tensor.dim() <= 4, op, ": ", name,
                    " must have 2 to 4 dimensions, but has shape ", tensor.sizes());
  TORCH_CHECK_VALUE(tensor.size(-1) % head == 0 && (tensor.dim() == 2 || tensor.size(-1) == head),
                    op, ": ", name, " must have heads of ", head, " elements, but has shape ",
                    tensor.sizes());
  const int64_t tokens_of = tensor.dim() == 4 ? tensor.size(0) * tensor.size(1) : tensor.size(0);
  TORCH_CHECK_VALUE(tokens_of == tokens, op, ": ", name, " must have ", tokens,
                    " tokens, as positions has, but has shape ", tensor.sizes());
  const int64_t heads = tensor.dim() == 2 ? tensor.size(1) / head : tensor.size(-2);
  return tensor.reshape({tokens, heads, head});
}

RotaryHeads in_and_out(const Tensor& in, const Tensor& out) {
  return {in.size(1),   in.const_data_ptr(),    in.stride(0),
          in.stride(1), out.mutable_data_ptr(), out.size(1) * out.size(2),
          out.size(2)};
}

std::tuple<Tensor, Tensor> rotary_embedding_cpu(const Tensor& positions, const Tensor& query,
                                                const Tensor& key, int64_t head_size,
                                                const Tensor& cos_sin_cache, bool is_neox) {
  constexpr auto kOp = "rotary_embedding_cpu";
  RECORD_FUNCTION("sgl-kernel::rotary_embedding_cpu", c10::ArrayRef<const c10::IValue>{});
  const Type type = check_row_operand(kOp, "query", query, 2);
  check_row_operand(kOp, "key", key, 2);
  TORCH_CHECK_TYPE(key.scalar_type() == query.scalar_type(), kOp, ": key is ", key.scalar_type(),
                   " but query is ", query.scalar_type());
  check_row_operand(kOp, "cos_sin_cache", cos_sin_cache, 2);
  const bool cache_is_float = cos_sin_cache.scalar_type() == at::kFloat;
  TORCH_CHECK_TYPE(cache_is_float || cos_sin_cache.scalar_type() == query.scalar_type(), kOp,
                   ": cos_sin_cache must be float32 or as query is, but is ",
                   cos_sin_cache.scalar_type());
  const int64_t rotary = cos_sin_cache.size(1);
  TORCH_CHECK_VALUE(
      cos_sin_cache.dim() == 2 && rotary % 2 == 0 && rotary <= head_size &&
          rotary <= kLargestRotary,
      kOp, ": cos_sin_cache must have an even number of columns, at most head_size = ", head_size,
      " and ", kLargestRotary, ", but has shape ", cos_sin_cache.sizes());
  check_cpu(kOp, "positions", positions);
  TORCH_CHECK_TYPE(positions.scalar_type() == at::kInt || positions.scalar_type() == at::kLong, kOp,
                   ": positions must be int32 or int64, but is ", positions.scalar_type());
  const int64_t tokens = positions.numel();
  const Tensor q = heads_of(kOp, "query", query, tokens, head_size);
  const Tensor k = heads_of(kOp, "key", key, tokens, head_size);
  const Tensor rows = positions.to(at::kLong).contiguous();
  const int64_t* row = rows.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < tokens; ++i) {
    TORCH_CHECK_INDEX(row[i] >= 0 && row[i] < cos_sin_cache.size(0), kOp, ": position ", row[i],
                      " of token ", i, " must be from 0 to ", cos_sin_cache.size(0) - 1);
  }
  Tensor query_out = at::empty(query.sizes(), query.options());
  Tensor key_out = at::empty(key.sizes(), key.options());
  if (tokens == 0) return {query_out, key_out};
  const Kernel& kernel = chosen_kernel(Operation::kRotaryEmbedding, type, tokens);
  const Rotary call = {is_neox,
                       head_size,
                       rotary,
                       in_and_out(q, query_out.view(q.sizes())),
                       in_and_out(k, key_out.view(k.sizes())),
                       row,
                       cos_sin_cache.const_data_ptr(),
                       cos_sin_cache.stride(0),
                       cache_is_float};
  const auto entry = std::get<RotaryKernel*>(kernel.entry);
  parallel_for(tokens * (q.size(1) + k.size(1)),
               [&](int64_t begin, int64_t end) { entry(call, begin, end); });
  count_call(kOp, kernel.name);
  return {query_out, key_out};
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sgl_kernel, m) {
  m.def("silu_and_mul_cpu(Tensor input) -> Tensor");
  m.def("gelu_and_mul_cpu(Tensor input) -> Tensor");
  m.def("gelu_tanh_and_mul_cpu(Tensor input) -> Tensor");
  m.def(
      "rotary_embedding_cpu(Tensor positions, Tensor query, Tensor key, int head_size, "
      "Tensor cos_sin_cache, bool is_neox) -> (Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(sgl_kernel, CPU, m) {
  m.impl("silu_and_mul_cpu", &silu_and_mul_cpu);
  m.impl("gelu_and_mul_cpu", &gelu_and_mul_cpu);
  m.impl("gelu_tanh_and_mul_cpu", &gelu_tanh_and_mul_cpu);
  m.impl("rotary_embedding_cpu", &rotary_embedding_cpu);
}

}  // namespace sgl_rvv
