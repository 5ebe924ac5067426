"""The W8A8 operators without their data."""

from __future__ import annotations

import torch

from sgl_kernel.fake import register_fake


def register() -> None:
    """Register the fakes; once for each process."""
    register_fake("per_token_quant_int8_cpu", per_token_quant_int8_cpu)
    register_fake("int8_scaled_mm_cpu", int8_scaled_mm_cpu)
    register_fake("int8_scaled_mm_with_quant", int8_scaled_mm_with_quant)


def per_token_quant_int8_cpu(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    m, k = rows.shape
    return rows.new_empty((m, k), dtype=torch.int8), rows.new_empty((m,), dtype=torch.float32)


def int8_scaled_mm_cpu(
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    scales1: torch.Tensor,
    scales2: torch.Tensor,
    bias: torch.Tensor | None,
    out_dtype: torch.dtype,
    is_packed: bool,
) -> torch.Tensor:
    # N is that of the scales: a packed weight's is a multiple of 32.
    return mat1.new_empty((mat1.shape[0], scales2.shape[0]), dtype=out_dtype)


def int8_scaled_mm_with_quant(
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    scales2: torch.Tensor,
    bias: torch.Tensor | None,
    out_dtype: torch.dtype,
    is_packed: bool,
) -> torch.Tensor:
    return mat1.new_empty((mat1.shape[0], scales2.shape[0]), dtype=out_dtype)
