"""One decode step in several ways: in plain torch, as SGLang 0.5.15 computes it on a CPU, and in our kernels.

Plain torch is what runs under `--attention-backend torch_native` without our plugin's kernels: RMSNorm.forward_native,
RotaryEmbedding.forward_native, SiluAndMul.forward_native, UnquantizedLinearMethod.apply, TorchNativeAttnBackend and
LogitsProcessor._compute_lm_head. The kernels are called as kernels/python/sglang_rvv calls them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
from step_operands import CACHE_SCALE, Layer, Linear, Operands
from torch.nn import functional

GROUPS = (
    "embedding",
    "norms",
    "linears",
    "rotary embedding",
    "attention",
    "gated activation",
    "lm_head",
    "greedy choice",
)

LAYOUT_VERSION = 1
"""Of packed weights."""

BY_TOKEN = math.nan
"""For a scale of the INT8 cache: each row has its own."""

operators = torch.ops.sgl_kernel

Tensor = torch.Tensor
Enter = Callable[[str], object]
"""Called with a group's name before what belongs to it."""


class Way(Protocol):
    """How a step computes its operators."""

    def norm(self, x: Tensor, residual: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
        """RMSNorm of `x` plus `residual` [rows, N], and the sum; without a residual `x` is that sum."""

    def linear(self, x: Tensor, layer: int, projection: str) -> Tensor:
        """[1, K] -> [1, N]."""

    def rotary(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        """Both turned, [1, heads * head] and [1, KV heads * head]."""

    def attention(self, query: Tensor, key: Tensor, value: Tensor, layer: int) -> Tensor:
        """Stores key and value and attends to the whole context -> [1, heads * head]."""

    def activation(self, x: Tensor) -> Tensor:
        """SiLU of the first half of [1, 2 N] times the second half."""

    def head(self, x: Tensor) -> Tensor:
        """[1, K] -> logits [1, vocabulary]."""


def step(operands: Operands, way: Way, enter: Enter) -> Tensor:
    """One token through the model -> its logits in FP32, [1, vocabulary]; the choice of the next one is made too."""
    shape = operands.shape
    sizes = [shape.heads * shape.head, *[shape.kv_heads * shape.head] * 2]
    enter("embedding")
    hidden = functional.embedding(operands.token, operands.embedding)
    residual: Tensor | None = None
    for number, layer in enumerate(operands.layers):
        enter("norms")
        hidden, residual = way.norm(hidden, residual, layer.input_norm)
        enter("linears")
        qkv = way.linear(hidden, number, "qkv_proj")
        enter("rotary embedding")
        query, key, value = qkv.split(sizes, dim=-1)
        if layer.query_norm is not None and layer.key_norm is not None:
            enter("norms")
            query = head_norm(way, query, layer.query_norm)
            key = head_norm(way, key, layer.key_norm)
            enter("rotary embedding")
        query, key = way.rotary(query, key)
        enter("attention")
        attended = way.attention(query, key, value, number)
        enter("linears")
        hidden = way.linear(attended, number, "o_proj")
        enter("norms")
        hidden, residual = way.norm(hidden, residual, layer.post_attention_norm)
        enter("linears")
        hidden = way.linear(hidden, number, "gate_up_proj")
        enter("gated activation")
        hidden = way.activation(hidden)
        enter("linears")
        hidden = way.linear(hidden, number, "down_proj")
    enter("norms")
    hidden, _ = way.norm(hidden, residual, operands.final_norm)
    enter("lm_head")
    logits = way.head(hidden)
    enter("greedy choice")
    logits = logits.float()
    torch.argmax(logits, -1)
    return logits


def head_norm(way: Way, x: Tensor, weight: Tensor) -> Tensor:
    """RMSNorm of each head of [1, heads * head]."""
    return way.norm(x.reshape(-1, weight.shape[0]), None, weight)[0].view(x.shape)


class PlainTorch:
    """What SGLang computes without us."""

    def __init__(self, operands: Operands) -> None:
        self.operands = operands
        self.caches = [(dequantised(layer.keys), dequantised(layer.values)) for layer in operands.layers]

    def norm(self, x: Tensor, residual: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
        dtype, given = x.dtype, x
        x = x.to(torch.float32)
        if residual is not None:
            x = x + residual.to(torch.float32)
            given = x.to(dtype)
        variance = x.pow(2).mean(dim=-1, keepdim=True)
        x = x * torch.rsqrt(variance + self.operands.shape.eps)
        return (x * weight).to(dtype), given

    def linear(self, x: Tensor, layer: int, projection: str) -> Tensor:
        one = self.operands.layers[layer].linears[projection]
        return functional.linear(x, one.weight, one.bias)

    def rotary(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = self.operands.cos_sin.index_select(0, self.operands.positions).chunk(2, dim=-1)
        return self._turned(query, cos, sin), self._turned(key, cos, sin)

    def _turned(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        head = self.operands.shape.head
        by_head = x.view(x.shape[0], -1, head)
        turning, rest = by_head[..., :head], by_head[..., head:]
        cos, sin = cos.unsqueeze(-2).to(x.dtype), sin.unsqueeze(-2).to(x.dtype)
        first, second = torch.chunk(turning, 2, dim=-1)
        turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
        return torch.cat((turned, rest), dim=-1).reshape(x.shape)

    def attention(self, query: Tensor, key: Tensor, value: Tensor, layer: int) -> Tensor:
        given, shape = self.operands, self.operands.shape
        keys, values = self.caches[layer]
        keys[given.slot] = key.view(-1, shape.kv_heads, shape.head)
        values[given.slot] = value.view(-1, shape.kv_heads, shape.head)
        out = torch.empty_like(query)
        by_head = out.view(-1, shape.heads, shape.head)
        queries = query.view(-1, shape.heads, shape.head).movedim(0, 1)
        for sequence in range(given.lengths.shape[0]):
            slots = given.req_to_token[given.request[sequence], 0 : given.lengths[sequence]]
            attended = functional.scaled_dot_product_attention(
                queries[:, sequence : sequence + 1, :].unsqueeze(0),
                keys[slots].movedim(0, 1).unsqueeze(0),
                values[slots].movedim(0, 1).unsqueeze(0),
                enable_gqa=shape.heads != shape.kv_heads,
                scale=shape.head**-0.5,
                is_causal=False,
            )
            by_head[sequence : sequence + 1, :, :] = attended.squeeze(0).movedim(1, 0)
        return out

    def activation(self, x: Tensor) -> Tensor:
        half = x.shape[-1] // 2
        return functional.silu(x[..., :half]) * x[..., half:]

    def head(self, x: Tensor) -> Tensor:
        weight = self.operands.head.weight
        return torch.matmul(x.to(weight.dtype), weight.T)


class Kernels:
    """The operators of our library, in BF16."""

    def __init__(self, operands: Operands) -> None:
        self.operands = operands
        shape = operands.shape
        self.packed = [{name: self.pack(one) for name, one in layer.linears.items()} for layer in operands.layers]
        self.packed_head = operators.convert_weight_packed(operands.head.weight)
        self.caches = [self.cache(layer) for layer in operands.layers]
        self.logits = torch.empty(1, shape.heads, torch.get_num_threads(), shape.head + 1)

    def pack(self, one: Linear) -> Tensor:
        return operators.convert_weight_packed(one.weight)

    def cache(self, layer: Layer) -> tuple[Tensor, ...]:
        return dequantised(layer.keys), dequantised(layer.values)

    def norm(self, x: Tensor, residual: Tensor | None, weight: Tensor) -> tuple[Tensor, Tensor]:
        eps = self.operands.shape.eps
        if residual is None:
            return operators.rmsnorm_cpu(x, weight, eps), x
        operators.fused_add_rmsnorm_cpu(x, residual, weight, eps)
        return x, residual

    def linear(self, x: Tensor, layer: int, projection: str) -> Tensor:
        one = self.operands.layers[layer].linears[projection]
        return self._packed(x, self.packed[layer][projection], one.bias, one.weight.shape[0])

    def _packed(self, x: Tensor, packed: Tensor, bias: Tensor | None, n: int) -> Tensor:
        k = x.shape[-1]
        out = operators.weight_packed_linear_out(x.reshape(-1, k), packed, bias, n, True, LAYOUT_VERSION)
        return out.reshape(*x.shape[:-1], n)

    def rotary(self, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        given = self.operands
        return operators.rotary_embedding_cpu(given.positions, query, key, given.shape.head, given.cos_sin, True)

    def attention(self, query: Tensor, key: Tensor, value: Tensor, layer: int) -> Tensor:
        given, shape = self.operands, self.operands.shape
        queries = query.reshape(-1, shape.heads, shape.head)
        out = query.new_empty((queries.shape[0], shape.heads * shape.head))
        self.decode(
            queries,
            *self.caches[layer][:2],
            out.view(-1, shape.heads, shape.head),
            key.view(-1, shape.kv_heads, shape.head),
            value.view(-1, shape.kv_heads, shape.head),
            given.slot,
            self.logits,
            given.req_to_token,
            given.request,
            given.lengths,
            shape.head**-0.5,
            0.0,
            *self.scales(layer),
        )
        return out

    @property
    def decode(self) -> Callable[..., object]:
        return operators.decode_attention_cpu

    def scales(self, layer: int) -> tuple[object, ...]:
        return ()

    def activation(self, x: Tensor) -> Tensor:
        return operators.silu_and_mul_cpu(x)

    def head(self, x: Tensor) -> Tensor:
        return self._packed(x, self.packed_head, None, self.operands.head.weight.shape[0])


class Int8Kernels(Kernels):
    """Projections in W8A8 and an INT8 cache; the head and everything else as it is."""

    def pack(self, one: Linear) -> Tensor:
        return operators.convert_weight_packed(one.codes)

    def cache(self, layer: Layer) -> tuple[Tensor, ...]:
        scales = [torch.full(codes.shape[:2], CACHE_SCALE) for codes in (layer.keys, layer.values)]
        return layer.keys.clone(), layer.values.clone(), *scales

    def linear(self, x: Tensor, layer: int, projection: str) -> Tensor:
        one = self.operands.layers[layer].linears[projection]
        k = x.shape[-1]
        out = operators.int8_scaled_mm_with_quant(
            x.reshape(-1, k), self.packed[layer][projection], one.scales, one.bias, x.dtype, True
        )
        return out.reshape(*x.shape[:-1], one.scales.shape[0])

    @property
    def decode(self) -> Callable[..., object]:
        return operators.decode_attention_int8_cpu

    def scales(self, layer: int) -> tuple[object, ...]:
        return (*self.caches[layer][2:], BY_TOKEN, BY_TOKEN)


def dequantised(codes: Tensor) -> Tensor:
    """A cache in BF16, exact."""
    return codes.to(torch.bfloat16) * CACHE_SCALE


WAYS: dict[str, Callable[[Operands], Way]] = {
    "torch": PlainTorch,
    "kernels": Kernels,
    "kernels, INT8": Int8Kernels,
}
