"""Which operators of our kernels serve the routes of a table: what `torch.ops.sgl_kernel` must have counted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PACKED_LINEAR_OP = "weight_packed_linear_out"
"""Serves every `packed` route, one call for one."""

ATTENTION = ("decode_attention", "extend_attention")
NORM = "norm"
OPERATORS = (*ATTENTION, NORM, "gated_activation", "rotary_embedding")
"""What a routing table has besides the projections of a model."""

PLAIN_NORM_OP, ADDING_NORM_OP = "rmsnorm_cpu", "fused_add_rmsnorm_cpu"
_LINEARS: Mapping[str, tuple[str, ...]] = {
    "packed": (PACKED_LINEAR_OP,),
    "row_major": ("linear_rowmajor",),
    "w8a8": ("int8_scaled_mm_with_quant", "per_token_quant_int8_cpu"),
    "w8a8_row_major": ("int8_scaled_mm_with_quant", "per_token_quant_int8_cpu", "convert_weight_packed"),
}
_ELEMENTWISE: Mapping[str, tuple[str, ...]] = {
    "gated_activation": ("silu_and_mul_cpu",),
    "rotary_embedding": ("rotary_embedding_cpu",),
}


@dataclass(frozen=True)
class Served:
    """`calls` that were routed as `what` says, each of which is a call of one of `ops`."""

    what: str
    ops: tuple[str, ...]
    calls: int


def served(lines: Iterable[tuple[str, str, int]], *, int8_cache: bool) -> list[Served]:
    """What the operators must have served, of (projection or operator, path, calls). Where several routes call one
    operator they are taken together; a norm is either of two operators.
    """
    calls: Counter[tuple[str, ...]] = Counter()
    named: dict[tuple[str, ...], list[str]] = {}
    for projection, path, count in lines:
        for ops in _ops(projection, path, int8_cache=int8_cache):
            calls[ops] += count
            what = f"as {path}" if path != "kernels" else f"{projection} to kernels"
            if what not in named.setdefault(ops, []):
                named[ops].append(what)
    return [Served(" and ".join(named[ops]), ops, count) for ops, count in calls.items()]


def norm_calls(layers: int, passes: int, *, qk_norms: bool) -> dict[str, int]:
    """Calls of both norm operators in so many passes: the first norm of a pass, and those of queries and keys, have no
    residual to add.
    """
    plain = 1 + (2 * layers if qk_norms else 0)
    return {PLAIN_NORM_OP: plain * passes, ADDING_NORM_OP: 2 * layers * passes}


def _ops(projection: str, path: str, *, int8_cache: bool) -> list[tuple[str, ...]]:
    """The groups of which one operator each is called."""
    if path != "kernels":
        return [(op,) for op in _LINEARS.get(path, ())]
    if projection in ATTENTION:
        return [(f"{projection}_int8_cpu",), ("store_kv",)] if int8_cache else [(f"{projection}_cpu",)]
    if projection == NORM:
        return [(PLAIN_NORM_OP, ADDING_NORM_OP)]
    return [(op,) for op in _ELEMENTWISE.get(projection, ())]
