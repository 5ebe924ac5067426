"""The linears of real models, and the quantisation of their activations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rvvbench.kernel_model.cases import CODE_BYTES, ELEMENT_BYTES, SCALE_BYTES, Case
from rvvbench.kernel_model.roofline import INT8_MACS_PER_CYCLE, MACS_PER_CYCLE
from rvvbench.manifest.shapes import projection_shapes

PACKED = "packed_linear"
INT8 = "int8_linear"
INT8_KIND = "int8"
LINEARS = (PACKED, "row_major_linear", INT8)
TOKEN_QUANT = "token_quant"
ROWS = (1, 2, 4, 6, 8, 16, 64)
QUANTISED_ROWS = (1, 64)

EXTREME = "all codes +-127"
EXTREME_PROJECTION = "o_proj"
"""Where an INT8 linear is also modelled with the slowest activations that there are."""

UNIT_COLUMNS = 64
"""Output columns in one unit: a multiple of every kernel's block, and a divisor of every N modelled."""


def linear(operation: str, kind: str, model: str, layer: str, *, m: int, n: int, k: int, extreme: bool = False) -> Case:
    """[m, k] times the weight [n, k]; m n k multiply-adds.

    Bytes: weight, activations and output. An INT8 linear quantises its activations itself: a code for each element of
    the weight, a scale for each of its rows.
    """
    weight = n * (k * CODE_BYTES + SCALE_BYTES) if operation == INT8 else n * k * ELEMENT_BYTES
    return Case(
        operation,
        kind,
        model,
        f"{layer}, {EXTREME}" if extreme else layer,
        n // UNIT_COLUMNS,
        (("n", UNIT_COLUMNS),),
        (("m", m), ("k", k), *((("extreme", 1),) if extreme else ())),
        moved_bytes=weight + (m * k + m * n) * ELEMENT_BYTES,
        macs=m * n * k,
        peak_macs_per_cycle=INT8_MACS_PER_CYCLE if operation == INT8 else MACS_PER_CYCLE,
    )


def token_quant(kind: str, model: str, *, m: int, k: int) -> Case:
    """[m, k] elements to as many codes and a scale for each row."""
    moved = m * (k * (ELEMENT_BYTES + CODE_BYTES) + SCALE_BYTES)
    fixed = (("k", k),)
    return Case(TOKEN_QUANT, kind, model, "activations", m, (("m", 1),), fixed, moved_bytes=moved, elements=m * k)


def linears(operation: str, kind: str, model: str, config: Mapping[str, Any]) -> list[Case]:
    """Every projection at every number of rows."""
    cases = []
    for shape in projection_shapes(config):
        for extreme in (False, True):
            if not extreme or (operation, shape.projection) == (INT8, EXTREME_PROJECTION):
                cases += [
                    linear(operation, kind, model, shape.projection, m=m, n=shape.n, k=shape.k, extreme=extreme)
                    for m in ROWS
                ]
    return cases


def quantisations(kind: str, model: str, config: Mapping[str, Any]) -> list[Case]:
    """The inputs of every projection; FP32 is not what models run."""
    if kind == "fp32":
        return []
    depths = dict.fromkeys(shape.k for shape in projection_shapes(config))
    return [token_quant(kind, model, m=m, k=k) for k in depths for m in QUANTISED_ROWS]
