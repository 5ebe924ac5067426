"""The door to `sgl_kernel`: whether it is there, what it can do here, and its operators in the forms that we call."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import Any

from sglang_rvv.upstream import IntegrationError

TILE = 32
"""Output features in one block of a packed weight, whatever the vector length."""

LAYOUT_VERSION = 1
"""Of the packed layout that this package asks for; a library that has another refuses."""

OPERATORS = (
    "convert_weight_packed",
    "decode_attention_cpu",
    "decode_attention_int8_cpu",
    "extend_attention_cpu",
    "extend_attention_int8_cpu",
    "fused_add_rmsnorm_cpu",
    "gelu_and_mul_cpu",
    "gelu_tanh_and_mul_cpu",
    "int8_scaled_mm_with_quant",
    "linear_rowmajor",
    "rmsnorm_cpu",
    "rotary_embedding_cpu",
    "silu_and_mul_cpu",
    "weight_packed_linear_out",
)
"""All that this package calls."""


@dataclass(frozen=True)
class Capability:
    """What `sgl_kernel` can do in this process. `why_not` is None exactly where it can be used.

    `vlen_bits` is 0 without RVV. A machine of another kind than riscv64 runs the portable kernels.
    """

    why_not: str | None
    library_sha256: str | None = None
    rvv: bool = False
    zvfh: bool = False
    vlen_bits: int = 0

    @property
    def usable(self) -> bool:
        return self.why_not is None

    def __str__(self) -> str:
        if self.library_sha256 is None:
            return "no kernels"
        vectors = f"VLEN {self.vlen_bits}, {'zvfh' if self.zvfh else 'no zvfh'}" if self.rvv else "no RVV, portable"
        return f"kernels {self.library_sha256[:12]} ({vectors})"


@functools.cache
def capability() -> Capability:
    """Load the library, once in a process, and look at what it has. Never raises: what is missing is said."""
    import torch

    try:
        import sgl_kernel
    except (ImportError, OSError, RuntimeError) as error:
        return Capability(f"sgl_kernel cannot be loaded: {error}")
    said = sgl_kernel.describe()
    found = Capability(None, sgl_kernel.library_sha256(), bool(said["rvv"]), bool(said["zvfh"]), int(said["vlen_bits"]))
    missing = [name for name in OPERATORS if not hasattr(torch.ops.sgl_kernel, name)]
    if missing:
        return without(found, f"sgl_kernel has no {', '.join(missing)}")
    if said["layout_version"] != LAYOUT_VERSION:
        return without(found, f"sgl_kernel packs by layout {said['layout_version']}, not {LAYOUT_VERSION}")
    if os.uname().machine == "riscv64" and not found.rvv:
        return without(found, "this riscv64 machine has no vector extension")
    return found


def without(found: Capability, why: str) -> Capability:
    """The same, not usable."""
    return Capability(why, found.library_sha256, found.rvv, found.zvfh, found.vlen_bits)


def pack(weight: Any) -> Any:
    """A row-major BF16, FP16 or INT8 weight [N, K] as blocks [ceil(N/32), K, 32]; the last one padded with zeros."""
    import torch

    n, k = weight.shape
    packed = torch.ops.sgl_kernel.convert_weight_packed(weight)
    expected = (-(-n // TILE), k, TILE)
    if tuple(packed.shape) != expected:
        raise IntegrationError(f"sgl_kernel packed a weight {n} x {k} into {tuple(packed.shape)}, not {expected}")
    return packed


def packed_bytes(n: int, k: int, element_bytes: int) -> int:
    """Bytes of a packed weight of N x K elements."""
    return -(-n // TILE) * TILE * k * element_bytes


def packed_linear(x: Any, packed: Any, bias: Any, out_features: int) -> Any:
    """`x` [..., K] times a packed weight, plus `bias` [N] or None -> [..., N]."""
    import torch

    k = x.shape[-1]
    out = torch.ops.sgl_kernel.weight_packed_linear_out(
        x.reshape(-1, k), packed, bias, out_features, True, LAYOUT_VERSION
    )
    return out.reshape(*x.shape[:-1], out_features)


def row_major_linear(x: Any, weight: Any, bias: Any) -> Any:
    """`x` [..., K] times a weight [N, K], plus `bias` [N] or None -> [..., N]."""
    import torch

    k = x.shape[-1]
    return torch.ops.sgl_kernel.linear_rowmajor(x.reshape(-1, k), weight, bias).reshape(*x.shape[:-1], weight.shape[0])


def w8a8_linear(x: Any, weight: Any, scale: Any, bias: Any, *, is_packed: bool) -> Any:
    """`x` [..., K] in floating point, quantised by row, times an INT8 weight with `scale` [N, 1] or [N] -> [..., N]."""
    import torch

    k = x.shape[-1]
    out = torch.ops.sgl_kernel.int8_scaled_mm_with_quant(x.reshape(-1, k), weight, scale, bias, x.dtype, is_packed)
    return out.reshape(*x.shape[:-1], scale.shape[0])
