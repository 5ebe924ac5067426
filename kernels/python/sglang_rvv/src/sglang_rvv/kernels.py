"""The door to `sgl_kernel`: loads the library and says clearly when it is not what was asked for."""

from __future__ import annotations

from typing import Any

from sglang_rvv.upstream import IntegrationError

TILE = 32
"""Output features in one block of a packed weight, whatever the vector length."""

OPERATORS = ("convert_weight_packed", "weight_packed_linear_out")


def load() -> None:
    """Import `sgl_kernel` and check that the operators of the packed linears are registered.

    Raises IntegrationError: packed linears were asked for, and running them with torch instead would be a lie.
    """
    import torch

    try:
        import sgl_kernel  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        raise IntegrationError(
            f"packed linears were asked for, but sgl_kernel cannot be loaded: {error}",
            mend="install the wheel that `rvvbench build` makes, or set SGLANG_RVV_LINEAR=torch",
        ) from error
    missing = [name for name in OPERATORS if not hasattr(torch.ops.sgl_kernel, name)]
    if missing:
        raise IntegrationError(
            f"sgl_kernel is loaded but registers no {', '.join(missing)}",
            mend="build the kernels of this checkout (`rvvbench build`), or set SGLANG_RVV_LINEAR=torch",
        )


def pack(weight: Any) -> Any:
    """A row-major BF16 or FP16 weight [N, K] as blocks [ceil(N/32), K, 32]; the last block is padded with zeros."""
    import torch

    n, k = weight.shape
    packed = torch.ops.sgl_kernel.convert_weight_packed(weight)
    expected = (-(-n // TILE), k, TILE)
    if tuple(packed.shape) != expected:
        raise IntegrationError(f"sgl_kernel packed a weight {n} x {k} into {tuple(packed.shape)}, not {expected}")
    return packed


def linear(x: Any, packed: Any, bias: Any, out_features: int) -> Any:
    """`x` [..., K] times a packed weight, plus `bias` [N] or None -> [..., N]."""
    import torch

    k = x.shape[-1]
    out = torch.ops.sgl_kernel.weight_packed_linear_out(x.reshape(-1, k), packed, bias, out_features, True)
    return out.reshape(*x.shape[:-1], out_features)
