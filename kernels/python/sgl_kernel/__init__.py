"""Linears for RVV 1.0 as `torch.ops.sgl_kernel`, with proof of what ran.

Importing this package loads `_ops.so`, which lies beside this file. On a machine without RVV 1.0 the same operators run
their portable kernels, and `attestation()` says so.

Operators (bfloat16 or float16, on the CPU; a bias may be of any floating type):

    convert_weight_packed(weight [N, K]) -> [ceil(N / 32), K, 32], layout version 1
    weight_packed_linear(mat1 [M, K], mat2, bias [N] or None, is_packed) -> [M, N]
    weight_packed_linear_out(mat1 [M, K], mat2, bias [N] or None, out_features, is_packed, layout_version=1)
        -> [M, out_features]
    linear_rowmajor(mat1 [M, K], weight [N, K], bias [N] or None) -> [M, N]

    per_token_quant_int8_cpu(A [M, K]) -> codes [M, K] INT8, scales [M] FP32
    int8_scaled_mm_cpu(mat1 [M, K] INT8, mat2, scales1 [M], scales2 [N], bias [N] or None, out_dtype, is_packed)
        -> [M, N] of out_dtype
    int8_scaled_mm_with_quant(mat1 [M, K], mat2, scales2 [N], bias [N] or None, out_dtype, is_packed) -> [M, N]

    decode_attention_cpu(query, k_cache, v_cache, output, key, value, loc, attn_logits, req_to_token, req_pool_indices,
        seq_lens, sm_scale, logit_cap)
    extend_attention_cpu(q_extend, k_extend, v_extend, o_extend, k_buffer, v_buffer, req_to_token, req_pool_indices,
        seq_lens, extend_seq_lens, extend_start_loc, max_len_extend, sm_scale, logit_cap)
    decode_attention_int8_cpu, extend_attention_int8_cpu: the same arguments, then k_scale_buf, v_scale_buf, k_scale,
        v_scale

    rmsnorm_cpu, gemma_rmsnorm_cpu, gemma3_rmsnorm_cpu(input [..., N], weight [N], eps) -> [..., N]
    l2norm_cpu(input, eps); fused_rmsnorm_gated_cpu(input, weight, gate, eps)
    fused_add_rmsnorm_cpu, gemma_fused_add_rmsnorm_cpu(input, residual, weight, eps): input becomes the norm of input +
        residual, residual the sum
    layernorm_cpu(input, weight, bias or None, eps); fused_add_layernorm_cpu(input, residual, weight, bias or None, eps)
    silu_and_mul_cpu, gelu_and_mul_cpu, gelu_tanh_and_mul_cpu(input [..., 2 N]) -> [..., N]
    rotary_embedding_cpu(positions, query, key, head_size, cos_sin_cache [positions, rotary], is_neox)
        -> query, key, turned

These also take float32, and inputs of two dimensions and more (activations: one) with any strides but in the last one.
All operands are of the input's type (cos_sin_cache may be float32). Norms are of the sum before it is rounded to the
residual.

`mat2` is the packed weight where `is_packed`, else [N, K], which is then packed anew in every call. A packed weight
does not carry N: `weight_packed_linear` takes all its 32 * ceil(N / 32) columns for N; the `_out` operator is told N.
Nor does it carry the version of its layout: who keeps packed weights keeps `describe()["layout_version"]` beside them
and passes it, and a library that reads another version refuses.

W8A8: codes are signed and symmetric, x = scale * code; `convert_weight_packed` packs an INT8 weight too, and N is that
of `scales2`. Scales may also be [M, 1] and [N, 1]; activations and outputs may also be float32. Quantisation gives
codes in [-127, 127], to nearest even; a row of zeros has codes 0, one with an infinity the scale infinity (codes +-127
at infinities, 0 elsewhere), one with a NaN the scale NaN. Sums of products are exact for any INT8, -128 included, up to
K = 131071; then they are scaled and rounded in FP32.

All results of linears are rounded once, from FP32 sums, and depend neither on M nor on the vector length nor on the
machine. Attention is FP32 between its inputs and its output; the order of its sums follows the vector length, and that
of decoding the number of threads, but never the rest of the batch.

Decoding writes the new keys and values into the caches at `loc`. Queries are [tokens, heads, head], caches
[slots, kv_heads, head], `attn_logits` FP32 [sequences, heads, splits, head_v + 1]: a split's partial result and, behind
it, the logarithm of its sum of exponentials, -inf where it saw nothing. Indices are int32 or int64; one that is out of
range is an IndexError, and nothing is written then.

The INT8 forms have int8 caches and scale buffers, FP32 [slots, kv_heads]; queries and output are bfloat16 or float16.
Extending writes the new keys and values into the caches too, at the slots that `req_to_token` has for them, and all
tokens are read from there. An element of a cache is its code times a scale. Static: `k_scale` and `v_scale` are given,
positive and finite, one for all rows; the buffers are neither read nor written. Dynamic: both are NaN; each row of each
KV head has the scale that the buffer holds for its slot. New rows that are floating are quantised: codes
round(x * (1 / scale)) within -127 and 127, ties to even in every rounding mode; dynamic ones round(x * (127 / a)) with
a = max |x| of the row and the scale a / 127, both FP32, and codes 0 with the scale 1 where a < 2^-100. New rows that
are int8 already are copied and need a static scale. ValueError, and nothing is written: a new row with a NaN or an
infinity, a scale of another kind than these, a scale that is read from a buffer and is not finite.

What is written must not overlap what is read, not even view in view; views between each other's rows are no overlap.
Extending leaves rows of tokens that no sequence covers as they are. No operator has a gradient, nor tells autograd what
it wrote: call them under `torch.no_grad()`. After a fork, as with torch itself, a child whose parent has used several
threads must set `torch.set_num_threads(1)` first.

`attestation()` counts what quantised the new rows as the operation `store_kv`.
"""

from __future__ import annotations

import torch

from sgl_kernel import fakes
from sgl_kernel.library import (
    attestation,
    describe,
    library_path,
    library_sha256,
    load,
    reset_attestation,
)

__version__ = "0.1.0"

__all__ = [
    "attestation",
    "convert_weight_packed",
    "decode_attention_cpu",
    "decode_attention_int8_cpu",
    "describe",
    "extend_attention_cpu",
    "extend_attention_int8_cpu",
    "fused_add_layernorm_cpu",
    "fused_add_rmsnorm_cpu",
    "fused_rmsnorm_gated_cpu",
    "gelu_and_mul_cpu",
    "gelu_tanh_and_mul_cpu",
    "gemma3_rmsnorm_cpu",
    "gemma_fused_add_rmsnorm_cpu",
    "gemma_rmsnorm_cpu",
    "int8_scaled_mm_cpu",
    "int8_scaled_mm_with_quant",
    "l2norm_cpu",
    "layernorm_cpu",
    "library_path",
    "library_sha256",
    "linear_rowmajor",
    "per_token_quant_int8_cpu",
    "reset_attestation",
    "rmsnorm_cpu",
    "rotary_embedding_cpu",
    "silu_and_mul_cpu",
    "weight_packed_linear",
    "weight_packed_linear_out",
]

load()
fakes.register()

convert_weight_packed = torch.ops.sgl_kernel.convert_weight_packed
decode_attention_cpu = torch.ops.sgl_kernel.decode_attention_cpu
decode_attention_int8_cpu = torch.ops.sgl_kernel.decode_attention_int8_cpu
extend_attention_cpu = torch.ops.sgl_kernel.extend_attention_cpu
extend_attention_int8_cpu = torch.ops.sgl_kernel.extend_attention_int8_cpu
fused_add_layernorm_cpu = torch.ops.sgl_kernel.fused_add_layernorm_cpu
fused_add_rmsnorm_cpu = torch.ops.sgl_kernel.fused_add_rmsnorm_cpu
fused_rmsnorm_gated_cpu = torch.ops.sgl_kernel.fused_rmsnorm_gated_cpu
gelu_and_mul_cpu = torch.ops.sgl_kernel.gelu_and_mul_cpu
gelu_tanh_and_mul_cpu = torch.ops.sgl_kernel.gelu_tanh_and_mul_cpu
gemma3_rmsnorm_cpu = torch.ops.sgl_kernel.gemma3_rmsnorm_cpu
gemma_fused_add_rmsnorm_cpu = torch.ops.sgl_kernel.gemma_fused_add_rmsnorm_cpu
gemma_rmsnorm_cpu = torch.ops.sgl_kernel.gemma_rmsnorm_cpu
int8_scaled_mm_cpu = torch.ops.sgl_kernel.int8_scaled_mm_cpu
int8_scaled_mm_with_quant = torch.ops.sgl_kernel.int8_scaled_mm_with_quant
l2norm_cpu = torch.ops.sgl_kernel.l2norm_cpu
layernorm_cpu = torch.ops.sgl_kernel.layernorm_cpu
linear_rowmajor = torch.ops.sgl_kernel.linear_rowmajor
per_token_quant_int8_cpu = torch.ops.sgl_kernel.per_token_quant_int8_cpu
rmsnorm_cpu = torch.ops.sgl_kernel.rmsnorm_cpu
rotary_embedding_cpu = torch.ops.sgl_kernel.rotary_embedding_cpu
silu_and_mul_cpu = torch.ops.sgl_kernel.silu_and_mul_cpu
weight_packed_linear = torch.ops.sgl_kernel.weight_packed_linear
weight_packed_linear_out = torch.ops.sgl_kernel.weight_packed_linear_out
