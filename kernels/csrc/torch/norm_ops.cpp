// torch.ops.sgl_kernel: norms. Rows are shared out; a few rows of kNormSharedColumns columns or
// more are each shared out by blocks.

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "core/norm.h"
#include "core/registry.h"
#include "torch/attestation.h"
#include "torch/operands.h"
#include "torch/parallel.h"
#include "torch/row_operands.h"

namespace sgl_rvv {
namespace {

using at::Tensor;

struct NormTensors {
  const Tensor& input;
  const Tensor* residual = nullptr;
  const Tensor* gate = nullptr;
  const Tensor* weight = nullptr;
  const Tensor* bias = nullptr;
};

// `bytes` of an element, `first` its data.
const void* moved(const void* first, int64_t elements, int64_t bytes) {
  return static_cast<const char*>(first) + elements * bytes;
}
void* moved(void* first, int64_t elements, int64_t bytes) {
  return static_cast<char*>(first) + elements * bytes;
}

void run_stretch(const Kernel& kernel, const Norm& call, int64_t rows) {
  const auto entry = std::get<NormKernel*>(kernel.entry);
  const int64_t blocks = norm_blocks(call.columns);
  if (rows >= at::get_num_threads() || blocks == 1) {
    parallel_for(rows, [&](int64_t begin, int64_t end) {
      std::vector<float> scratch(static_cast<size_t>(norm_scratch_floats(call.columns)));
      entry(call, NormStage::kRows, begin, end, scratch.data());
    });
    return;
  }
  std::vector<float> scratch(static_cast<size_t>(norm_scratch_floats(call.columns)));
  const int64_t bytes = kernel.left == Type::kFp32 ? 4 : 2;
  for (int64_t row = 0; row < rows; ++row) {
    Norm one = call;
    one.input = moved(call.input, row * call.input_stride, bytes);
    one.out = moved(call.out, row * call.out_stride, bytes);
    if (call.residual != nullptr) {
      one.residual = moved(call.residual, row * call.residual_stride, bytes);
    }
    if (call.gate != nullptr) one.gate = moved(call.gate, row * call.gate_stride, bytes);
    for (const NormStage stage : {NormStage::kSums, NormStage::kDeviations, NormStage::kFinish}) {
      if (stage == NormStage::kDeviations && call.kind != NormKind::kLayer) continue;
      parallel_for(blocks, [&](int64_t begin, int64_t end) {
        entry(one, stage, begin, end, scratch.data());
      });
    }
  }
}

void run(const char* op, Type type, NormKind kind, const NormTensors& of, const Tensor& out,
         double eps) {
  const Tensor& input = of.input;
  if (input.numel() == 0) return;
  const RowShape shape = row_shape({&input, &out, of.residual != nullptr ? of.residual : &input,
                                    of.gate != nullptr ? of.gate : &input});
  const Kernel& kernel = chosen_kernel(Operation::kNorm, type, shape.rows);
  const auto bytes = static_cast<int64_t>(input.element_size());
  for (int64_t index = 0; index * shape.inner < shape.rows; ++index) {
    const auto place = [&](const Tensor* tensor) {
      return tensor == nullptr ? RowStretch{0, 0} : row_stretch(*tensor, shape, index);
    };
    const RowStretch in = place(&input), to = place(&out), add = place(of.residual),
                     gate = place(of.gate);
    const Norm call = {
        kind,
        input.size(-1),
        moved(input.const_data_ptr(), in.offset, bytes),
        in.stride,
        of.residual == nullptr ? nullptr
                               : moved(of.residual->mutable_data_ptr(), add.offset, bytes),
        add.stride,
        of.gate == nullptr ? nullptr : moved(of.gate->const_data_ptr(), gate.offset, bytes),
        gate.stride,
        of.weight == nullptr ? nullptr : of.weight->const_data_ptr(),
        of.bias == nullptr ? nullptr : of.bias->const_data_ptr(),
        moved(out.mutable_data_ptr(), to.offset, bytes),
        to.stride,
        static_cast<float>(eps)};
    run_stretch(kernel, call, shape.inner);
  }
  count_call(op, kernel.name);
}

Tensor like_rows(const Tensor& input) {
  return at::empty(input.sizes(), input.options());
}

Tensor rms(const char* op, NormKind kind, const Tensor& input, const Tensor& weight, double eps) {
  const Type type = check_row_operand(op, "input", input, 2);
  check_per_column(op, "weight", weight, input);
  Tensor out = like_rows(input);
  run(op, type, kind, {input, nullptr, nullptr, &weight}, out, eps);
  return out;
}

Tensor rmsnorm_cpu(const Tensor& input, const Tensor& weight, double eps) {
  RECORD_FUNCTION("sgl-kernel::rmsnorm_cpu", c10::ArrayRef<const c10::IValue>{});
  return rms("rmsnorm_cpu", NormKind::kRmsWeight, input, weight, eps);
}

Tensor gemma_rmsnorm_cpu(const Tensor& input, const Tensor& weight, double eps) {
  RECORD_FUNCTION("sgl-kernel::gemma_rmsnorm_cpu", c10::ArrayRef<const c10::IValue>{});
  return rms("gemma_rmsnorm_cpu", NormKind::kRmsOnePlusWeight, input, weight, eps);
}

Tensor gemma3_rmsnorm_cpu(const Tensor& input, const Tensor& weight, double eps) {
  RECORD_FUNCTION("sgl-kernel::gemma3_rmsnorm_cpu", c10::ArrayRef<const c10::IValue>{});
  return rms("gemma3_rmsnorm_cpu", NormKind::kRmsOnePlusWeight, input, weight, eps);
}

Tensor l2norm_cpu(const Tensor& input, double eps) {
  constexpr auto kOp = "l2norm_cpu";
  RECORD_FUNCTION("sgl-kernel::l2norm_cpu", c10::ArrayRef<const c10::IValue>{});
  const Type type = check_row_operand(kOp, "input", input, 2);
  Tensor out = like_rows(input);
  run(kOp, type, NormKind::kRms, {input}, out, eps);
  return out;
}

Tensor fused_rmsnorm_gated_cpu(const Tensor& input, const Tensor& weight, const Tensor& gate,
                               double eps) {
  constexpr auto kOp = "fused_rmsnorm_gated_cpu";
  RECORD_FUNCTION("sgl-kernel::fused_rmsnorm_gated_cpu", c10::ArrayRef<const c10::IValue>{});
  const Type type = check_row_operand(kOp, "input", input, 2);
  check_per_column(kOp, "weight", weight, input);
  check_alike(kOp, "gate", gate, input, "input");
  Tensor out = like_rows(input);
  run(kOp, type, NormKind::kRmsGated, {input, nullptr, &gate, &weight}, out, eps);
  return out;
}

const Tensor* given(const std::optional<Tensor>& tensor) {
  return tensor.has_value() && tensor->defined() ? &*tensor : nullptr;
}

Tensor layer(const char* op, const Tensor& input, const Tensor* residual, const Tensor& weight,
             const std::optional<Tensor>& bias, double eps) {
  const Type type = check_row_operand(op, "input", input, 2);
  if (residual != nullptr) {
    check_alike(op, "residual", *residual, input, "input");
    check_written_apart(op, "residual", *residual, "input", input);
  }
  check_per_column(op, "weight", weight, input);
  if (given(bias) != nullptr) check_per_column(op, "bias", *bias, input);
  if (residual != nullptr) {
    check_written_apart(op, "residual", *residual, "weight", weight);
    if (given(bias) != nullptr) check_written_apart(op, "residual", *residual, "bias", *bias);
  }
  Tensor out = like_rows(input);
  run(op, type, NormKind::kLayer, {input, residual, nullptr, &weight, given(bias)}, out, eps);
  return out;
}

Tensor layernorm_cpu(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias,
                     double eps) {
  RECORD_FUNCTION("sgl-kernel::layernorm_cpu", c10::ArrayRef<const c10::IValue>{});
  return layer("layernorm_cpu", input, nullptr, weight, bias, eps);
}

Tensor fused_add_layernorm_cpu(const Tensor& input, const Tensor& residual, const Tensor& weight,
                               const std::optional<Tensor>& bias, double eps) {
  RECORD_FUNCTION("sgl-kernel::fused_add_layernorm_cpu", c10::ArrayRef<const c10::IValue>{});
  return layer("fused_add_layernorm_cpu", input, &residual, weight, bias, eps);
}

void fused_add(const char* op, NormKind kind, const Tensor& input, const Tensor& residual,
               const Tensor& weight, double eps) {
  const Type type = check_row_operand(op, "input", input, 2);
  check_alike(op, "residual", residual, input, "input");
  check_per_column(op, "weight", weight, input);
  check_written_apart(op, "residual", residual, "input", input);
  check_written_apart(op, "input", input, "weight", weight);
  check_written_apart(op, "residual", residual, "weight", weight);
  run(op, type, kind, {input, &residual, nullptr, &weight}, input, eps);
}

void fused_add_rmsnorm_cpu(const Tensor& input, const Tensor& residual, const Tensor& weight,
                           double eps) {
  RECORD_FUNCTION("sgl-kernel::fused_add_rmsnorm_cpu", c10::ArrayRef<const c10::IValue>{});
  fused_add("fused_add_rmsnorm_cpu", NormKind::kRmsWeight, input, residual, weight, eps);
}

void gemma_fused_add_rmsnorm_cpu(const Tensor& input, const Tensor& residual, const Tensor& weight,
                                 double eps) {
  RECORD_FUNCTION("sgl-kernel::gemma_fused_add_rmsnorm_cpu", c10::ArrayRef<const c10::IValue>{});
  fused_add("gemma_fused_add_rmsnorm_cpu", NormKind::kRmsOnePlusWeight, input, residual, weight,
            eps);
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sgl_kernel, m) {
  m.def("rmsnorm_cpu(Tensor input, Tensor weight, float eps) -> Tensor");
  m.def("gemma_rmsnorm_cpu(Tensor input, Tensor weight, float eps) -> Tensor");
  m.def("gemma3_rmsnorm_cpu(Tensor input, Tensor weight, float eps) -> Tensor");
  m.def("l2norm_cpu(Tensor input, float eps) -> Tensor");
  m.def("layernorm_cpu(Tensor input, Tensor weight, Tensor? bias, float eps) -> Tensor");
  m.def(
      "fused_add_rmsnorm_cpu(Tensor(a!) input, Tensor(b!) residual, Tensor weight, float eps) -> "
      "()");
  m.def(
      "gemma_fused_add_rmsnorm_cpu(Tensor(a!) input, Tensor(b!) residual, Tensor weight, "
      "float eps) -> ()");
  m.def(
      "fused_add_layernorm_cpu(Tensor input, Tensor(a!) residual, Tensor weight, Tensor? bias, "
      "float eps) -> Tensor");
  m.def("fused_rmsnorm_gated_cpu(Tensor input, Tensor weight, Tensor gate, float eps) -> Tensor");
}

TORCH_LIBRARY_IMPL(sgl_kernel, CPU, m) {
  m.impl("rmsnorm_cpu", &rmsnorm_cpu);
  m.impl("gemma_rmsnorm_cpu", &gemma_rmsnorm_cpu);
  m.impl("gemma3_rmsnorm_cpu", &gemma3_rmsnorm_cpu);
  m.impl("l2norm_cpu", &l2norm_cpu);
  m.impl("layernorm_cpu", &layernorm_cpu);
  m.impl("fused_add_rmsnorm_cpu", &fused_add_rmsnorm_cpu);
  m.impl("gemma_fused_add_rmsnorm_cpu", &gemma_fused_add_rmsnorm_cpu);
  m.impl("fused_add_layernorm_cpu", &fused_add_layernorm_cpu);
  m.impl("fused_rmsnorm_gated_cpu", &fused_rmsnorm_gated_cpu);
}

}  // namespace sgl_rvv
