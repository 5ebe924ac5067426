"""Norms, gated activations and rotary embeddings without their data."""

from __future__ import annotations

import torch

from sgl_kernel.fake import register_fake


def register() -> None:
    """Register the fakes; once for each process."""
    for name in ("rmsnorm", "gemma_rmsnorm", "gemma3_rmsnorm", "l2norm", "layernorm", "fused_rmsnorm_gated"):
        register_fake(f"{name}_cpu", like_input)
    register_fake("fused_add_layernorm_cpu", like_input)
    for name in ("fused_add_rmsnorm", "gemma_fused_add_rmsnorm"):
        register_fake(f"{name}_cpu", writes_only)
    for name in ("silu", "gelu", "gelu_tanh"):
        register_fake(f"{name}_and_mul_cpu", half_of_input)
    register_fake("rotary_embedding_cpu", rotary_embedding)


def like_input(input: torch.Tensor, *args: torch.Tensor | float | None) -> torch.Tensor:
    return input.new_empty(input.shape)


def writes_only(*args: torch.Tensor | float) -> None:
    """What is written is in the schema."""


def half_of_input(input: torch.Tensor) -> torch.Tensor:
    return input.new_empty((*input.shape[:-1], input.shape[-1] // 2))


def rotary_embedding(
    positions: torch.Tensor,
    query: torch.Tensor,
    key: torch.Tensor,
    head_size: int,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    return query.new_empty(query.shape), key.new_empty(key.shape)
