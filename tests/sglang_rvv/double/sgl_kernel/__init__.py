"""A double of `sgl_kernel` in pure torch: the operators' signatures and layout, counted, with none of their speed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import torch

TILE = 32
_calls: dict[str, int] = {}


def convert_weight_packed(weight: torch.Tensor) -> torch.Tensor:
    """[N, K] -> [ceil(N/32), K, 32], zeros in the last block."""
    _count("convert_weight_packed")
    n, k = weight.shape
    padded = weight.new_zeros((-(-n // TILE) * TILE, k))
    padded[:n] = weight
    return padded.view(-1, TILE, k).transpose(1, 2).contiguous()


def weight_packed_linear_out(
    mat1: torch.Tensor, mat2: torch.Tensor, bias: torch.Tensor | None, out_features: int, is_packed: bool
) -> torch.Tensor:
    """[M, K] -> [M, out_features]."""
    _count("weight_packed_linear_out")
    assert is_packed and mat1.dim() == 2
    weight = mat2.transpose(1, 2).reshape(-1, mat2.shape[1])[:out_features]
    return torch.nn.functional.linear(mat1, weight, bias)


def attestation() -> dict[str, Any]:
    """As the real package's; the library is `double.so` beside this file, if a test put one there."""
    library = Path(__file__).with_name("double.so")
    digest = hashlib.sha256(library.read_bytes()).hexdigest() if library.exists() else None
    return {"library_sha256": digest, "ops": {op: {"kernel": "double", "calls": n} for op, n in _calls.items()}}


def reset_attestation() -> None:
    _calls.clear()


def _count(op: str) -> None:
    _calls[op] = _calls.get(op, 0) + 1


_library = torch.library.Library("sgl_kernel", "DEF")
_library.define("convert_weight_packed(Tensor weight) -> Tensor")
_library.define(
    "weight_packed_linear_out(Tensor mat1, Tensor mat2, Tensor? bias, int out_features, bool is_packed) -> Tensor"
)
_library.impl("convert_weight_packed", convert_weight_packed, "CPU")
_library.impl("weight_packed_linear_out", weight_packed_linear_out, "CPU")
