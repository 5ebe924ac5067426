"""Shapes of the operators without their data, for torch.compile and torch.export.

SGLang's own fakes take N from the first dimension of a packed weight, which is wrong for [ceil(N / 32), K, 32].
"""

from __future__ import annotations

import torch

from sgl_kernel import attention_fakes, int8_fakes, row_fakes
from sgl_kernel.fake import register_fake

BLOCK_COLUMNS = 32


def register() -> None:
    """Register the fakes; once for each process."""
    register_fake("convert_weight_packed", convert_weight_packed)
    register_fake("weight_packed_linear", weight_packed_linear)
    register_fake("weight_packed_linear_out", weight_packed_linear_out)
    register_fake("linear_rowmajor", linear_rowmajor)
    attention_fakes.register()
    int8_fakes.register()
    row_fakes.register()


def convert_weight_packed(weight: torch.Tensor) -> torch.Tensor:
    n, k = weight.shape
    return weight.new_empty(((n + BLOCK_COLUMNS - 1) // BLOCK_COLUMNS, k, BLOCK_COLUMNS))


def weight_packed_linear(
    mat1: torch.Tensor, mat2: torch.Tensor, bias: torch.Tensor | None, is_packed: bool
) -> torch.Tensor:
    n = mat2.shape[0] * BLOCK_COLUMNS if is_packed else mat2.shape[0]
    return mat1.new_empty((mat1.shape[0], n))


def weight_packed_linear_out(
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    bias: torch.Tensor | None,
    out_features: int,
    is_packed: bool,
    layout_version: int = 1,
) -> torch.Tensor:
    return mat1.new_empty((mat1.shape[0], out_features))


def linear_rowmajor(mat1: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    return mat1.new_empty((mat1.shape[0], weight.shape[0]))
