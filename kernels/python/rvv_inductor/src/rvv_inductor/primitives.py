"""`torch.ops.rvv_inductor`: packing of a BF16 weight, and the linear on a packed one. Defined at import.

    rvv_pack_bf16_weight(Tensor weight, int layout_version=1) -> Tensor
        weight [N, K] -> [ceil(N / 32), K, 32], zeros where N ends within a block
    rvv_packed_bf16_linear(Tensor input, Tensor packed_weight, SymInt out_features, int layout_version=1) -> Tensor
        input [..., K] -> [..., out_features], summed in FP32 and rounded once

Eager they are the operators of `sgl_kernel`; `lowering` compiles the linear. ValueError for a layout version that is
not known, for shapes and types that do not fit: in eager mode as under a fake tensor, where the compilation fails.
"""

from __future__ import annotations

import torch

from rvv_inductor.errors import InductorError

NAMESPACE = "rvv_inductor"
LAYOUT_VERSION = 1
"""The packed layout that is known here (kernels/csrc/core/packed_layout.h)."""

BLOCK_COLUMNS = 32

_library = torch.library.Library(NAMESPACE, "DEF")
_library.define(
    "rvv_pack_bf16_weight(Tensor weight, int layout_version=1) -> Tensor", tags=(torch.Tag.pt2_compliant_tag,)
)
_library.define(
    "rvv_packed_bf16_linear(Tensor input, Tensor packed_weight, SymInt out_features, int layout_version=1) -> Tensor",
    tags=(torch.Tag.pt2_compliant_tag,),
)


def blocks(out_features: int) -> int:
    """Blocks of 32 columns that N columns take; of a SymInt another one."""
    return (out_features + BLOCK_COLUMNS - 1) // BLOCK_COLUMNS


def check_layout_version(op: str, version: int) -> None:
    """Raise ValueError for a layout that is not known."""
    torch._check_value(
        version == LAYOUT_VERSION,
        lambda: f"{op}: layout_version {version} is not known, only {LAYOUT_VERSION}: pack the weight again",
    )


def check_weight(weight: torch.Tensor, layout_version: int) -> None:
    """Raise ValueError for what `rvv_pack_bf16_weight` does not take."""
    op = "rvv_pack_bf16_weight"
    check_layout_version(op, layout_version)
    torch._check_value(weight.dim() == 2, lambda: f"{op}: weight must be [N, K], but has {weight.dim()} dimensions")
    torch._check_value(weight.dtype == torch.bfloat16, lambda: f"{op}: weight must be bfloat16, but is {weight.dtype}")


def check_linear(x: torch.Tensor, packed: torch.Tensor, out_features: int, layout_version: int) -> None:
    """Raise ValueError for what `rvv_packed_bf16_linear` does not take."""
    op = "rvv_packed_bf16_linear"
    check_layout_version(op, layout_version)
    torch._check_value(x.dim() >= 1, lambda: f"{op}: input must be [..., K]")
    torch._check_value(x.dtype == torch.bfloat16, lambda: f"{op}: input must be bfloat16, but is {x.dtype}")
    torch._check_value(
        packed.dtype == torch.bfloat16, lambda: f"{op}: packed_weight must be bfloat16, but is {packed.dtype}"
    )
    torch._check_value(out_features > 0, lambda: f"{op}: out_features must be positive, but is {out_features}")
    torch._check_value(
        packed.dim() == 3, lambda: f"{op}: packed_weight must be [ceil(N/32), K, 32], but has {packed.dim()} dimensions"
    )
    for have, want, what in (
        (packed.shape[0], blocks(out_features), f"ceil({out_features} / {BLOCK_COLUMNS}) blocks"),
        (packed.shape[1], x.shape[-1], "the input's K"),
        (packed.shape[2], BLOCK_COLUMNS, f"{BLOCK_COLUMNS} columns"),
    ):
        torch._check_value(
            have == want,
            lambda have=have, want=want, what=what: f"{op}: packed_weight has {have} where {what} make {want}",
        )


def pack_fake(weight: torch.Tensor, layout_version: int = LAYOUT_VERSION) -> torch.Tensor:
    check_weight(weight, layout_version)
    n, k = weight.shape
    return weight.new_empty((blocks(n), k, BLOCK_COLUMNS))


def linear_fake(
    input: torch.Tensor, packed_weight: torch.Tensor, out_features: int, layout_version: int = LAYOUT_VERSION
) -> torch.Tensor:
    check_linear(input, packed_weight, out_features, layout_version)
    return input.new_empty((*input.shape[:-1], out_features))


def pack_eager(weight: torch.Tensor, layout_version: int = LAYOUT_VERSION) -> torch.Tensor:
    check_weight(weight, layout_version)
    packed: torch.Tensor = kernels("convert_weight_packed")(weight)
    return packed


def linear_eager(
    input: torch.Tensor, packed_weight: torch.Tensor, out_features: int, layout_version: int = LAYOUT_VERSION
) -> torch.Tensor:
    check_linear(input, packed_weight, out_features, layout_version)
    rows = input.reshape(-1, input.shape[-1])
    out: torch.Tensor = kernels("weight_packed_linear_out")(
        rows, packed_weight, None, out_features, True, layout_version
    )
    return out.reshape(*input.shape[:-1], out_features)


def kernels(operator: str) -> torch._ops.OpOverloadPacket:
    """An operator of `sgl_kernel`, whose library must be loaded. Raises InductorError where it is not."""
    if not hasattr(torch.ops.sgl_kernel, operator):
        raise InductorError(
            f"torch.ops.sgl_kernel.{operator} is not there, and nothing else computes it in eager mode",
            mend="install sgl_kernel_rvv and `import sgl_kernel`",
        )
    return getattr(torch.ops.sgl_kernel, operator)


_library.impl("rvv_pack_bf16_weight", pack_eager, "CPU")
_library.impl("rvv_packed_bf16_linear", linear_eager, "CPU")
torch.library.register_fake(f"{NAMESPACE}::rvv_pack_bf16_weight", pack_fake, lib=_library)
torch.library.register_fake(f"{NAMESPACE}::rvv_packed_bf16_linear", linear_fake, lib=_library)
