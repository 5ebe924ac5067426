"""Norms, gated activations and rotary embeddings of a loaded model: on our kernels where they compute the same thing,
and counted whichever way they go.

SGLang's `MultiPlatformOp` computes in `module._forward_method`, which every module chooses when it is made; replacing
it on the module is what its own switch for torch.compile does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from sglang.srt.layers.activation import GeluAndMul, SiluAndMul
from sglang.srt.layers.layernorm import RMSNorm
from sglang.srt.layers.rotary_embedding.base import RotaryEmbedding

from sglang_rvv import routing

FLOATING = (torch.bfloat16, torch.float16, torch.float32)

NORM = "norm"
GATED_ACTIVATION = "gated_activation"
ROTARY_EMBEDDING = "rotary_embedding"

Forward = Callable[..., Any]


def prepare(model: torch.nn.Module, *, ours: bool) -> dict[str, tuple[int, int]]:
    """Replace what these modules compute with. {operation: (modules on our kernels, modules that SGLang computes)}."""
    found: dict[str, tuple[int, int]] = {}
    for _, module, operation, make in modules(model):
        stock = getattr(module, "rvv_stock_forward", None) or module._forward_method
        module.__dict__["rvv_stock_forward"] = stock
        kernel = make(module, stock) if ours else None
        module._forward_method = kernel or counted(operation, stock)
        with_kernels, without = found.get(operation, (0, 0))
        found[operation] = (with_kernels + (kernel is not None), without + (kernel is None))
    return found


def modules(model: torch.nn.Module) -> Iterator[tuple[str, Any, str, Callable[[Any, Forward], Forward | None]]]:
    """(full name, module, operation, what makes its forward on our kernels or None)."""
    for name, module in model.named_modules():
        if isinstance(module, RMSNorm):
            yield name, module, NORM, rms_norm
        elif isinstance(module, SiluAndMul | GeluAndMul):
            yield name, module, GATED_ACTIVATION, gated_activation
        elif isinstance(module, RotaryEmbedding):
            yield name, module, ROTARY_EMBEDDING, rotary_embedding


def counted(operation: str, stock: Forward) -> Forward:
    """SGLang's own forward, counted with the rows of its first floating-point argument."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        routing.count(operation, rows_of(operation, args, kwargs), "torch")
        return stock(*args, **kwargs)

    return forward


def rows_of(operation: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Rows of an input [..., N]; of a rotary embedding the number of positions."""
    first: torch.Tensor = args[0] if args else next(iter(kwargs.values()))
    rows: int = first.numel() if operation == ROTARY_EMBEDDING else first.numel() // first.shape[-1]
    return rows


def rms_norm(module: Any, stock: Forward) -> Forward | None:
    """RMSNorm over the whole last dimension, weighted in FP32; with a residual both are written in place."""
    plain = (
        type(module) is RMSNorm
        and module.has_weight
        and module.variance_size_override is None
        and not module.cast_x_before_out_mul
        and not module.fp32_residual
        and module.override_orig_dtype is None
    )
    if not plain:
        return None
    other = counted(NORM, stock)

    def forward(
        x: torch.Tensor, residual: torch.Tensor | None = None, post_residual_addition: torch.Tensor | None = None
    ) -> Any:
        weight = module.weight.data
        fits = x.dtype == weight.dtype and x.dtype in FLOATING and x.numel() > 0 and x.stride(-1) == 1
        if not fits or post_residual_addition is not None:
            return other(x, residual, post_residual_addition)
        if residual is None:
            routing.count(NORM, x.numel() // x.shape[-1], "kernels")
            return torch.ops.sgl_kernel.rmsnorm_cpu(x, weight, module.variance_epsilon)
        if residual.dtype != x.dtype or residual.stride(-1) != 1:
            return other(x, residual, None)
        routing.count(NORM, x.numel() // x.shape[-1], "kernels")
        torch.ops.sgl_kernel.fused_add_rmsnorm_cpu(x, residual, weight, module.variance_epsilon)
        return x, residual

    return forward


def gated_activation(module: Any, stock: Forward) -> Forward | None:
    """SiLU or GELU of the first half of the last dimension, times the second half."""
    if type(module) is SiluAndMul:
        operator = torch.ops.sgl_kernel.silu_and_mul_cpu
    elif type(module) is GeluAndMul and module.approximate in ("none", "tanh"):
        tanh = module.approximate == "tanh"
        operator = torch.ops.sgl_kernel.gelu_tanh_and_mul_cpu if tanh else torch.ops.sgl_kernel.gelu_and_mul_cpu
    else:
        return None
    other = counted(GATED_ACTIVATION, stock)

    def forward(x: torch.Tensor) -> torch.Tensor:
        if x.dtype not in FLOATING or x.numel() == 0 or x.stride(-1) != 1:
            result: torch.Tensor = other(x)
            return result
        routing.count(GATED_ACTIVATION, x.numel() // x.shape[-1], "kernels")
        out: torch.Tensor = operator(x)
        return out

    return forward


def rotary_embedding(module: Any, stock: Forward) -> Forward | None:
    """Any rotary embedding that differs from the plain one in its table only."""
    plain = type(module).forward_native is RotaryEmbedding.forward_native and "forward" not in vars(type(module))
    if not plain or hasattr(module, "sin_cos_cache"):
        return None
    other = counted(ROTARY_EMBEDDING, stock)

    def forward(
        positions: torch.Tensor,
        query: torch.Tensor,
        key: torch.Tensor,
        offsets: torch.Tensor | None = None,
        fused_set_kv_buffer_arg: Any = None,
    ) -> Any:
        cache = module.cos_sin_cache
        fits = (
            query.dtype in FLOATING
            and key.dtype == query.dtype
            and cache.dtype in (query.dtype, torch.float32)
            and positions.dim() == 1
            and positions.numel() > 0
        )
        if not fits or offsets is not None or fused_set_kv_buffer_arg is not None:
            return other(positions, query, key, offsets, fused_set_kv_buffer_arg)
        routing.count(ROTARY_EMBEDDING, positions.numel(), "kernels")
        return torch.ops.sgl_kernel.rotary_embedding_cpu(
            positions, query, key, module.head_size, cache, module.is_neox_style
        )

    return forward
