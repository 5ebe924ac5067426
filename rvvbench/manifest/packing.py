"""Which weights of a model are packed beside their row-major form, and what they take. Pure.

SGLang loads row-major weights, and they stay. Packing goes through the modules in one fixed order, layer by layer
qkv_proj, o_proj, gate_up_proj and down_proj, then lm_head: a module is packed if it fits into what is left of the
budget, else it stays row-major and the next one is tried (first fit).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rvvbench.manifest.models import LAYER_PROJECTIONS, PROJECTIONS, Projection, Variant
from rvvbench.manifest.shapes import BF16_BYTES, INT8_BYTES, projection_shapes

MIB = 1024**2


@dataclass(frozen=True)
class Module:
    """A linear that packing may take: that of `layer` (None: lm_head), and the `bytes` of its packed weight."""

    projection: Projection
    layer: int | None
    bytes: int

    @property
    def name(self) -> str:
        """`layers.0.qkv_proj`, or `lm_head`."""
        return self.projection if self.layer is None else f"layers.{self.layer}.{self.projection}"


@dataclass(frozen=True)
class Packing:
    """The modules that a variant lists, apart by what becomes of them. `budget_bytes` None: no budget is declared."""

    packed: tuple[Module, ...]
    row_major: tuple[Module, ...]
    budget_bytes: int | None

    @property
    def packed_bytes(self) -> int:
        return sum(module.bytes for module in self.packed)

    @property
    def row_major_bytes(self) -> int:
        """What packing the rest would take too."""
        return sum(module.bytes for module in self.row_major)

    @property
    def budget_mib(self) -> float | None:
        """The budget as SGLang is told it: exact, for 2^20 is a power of two."""
        return None if self.budget_bytes is None else self.budget_bytes / MIB


def modules(config: Mapping[str, Any], variant: Variant) -> tuple[Module, ...]:
    """The modules that `variant` packs if they fit, in the order of packing. Those computed in W8A8 are INT8."""
    shapes = {shape.projection: shape for shape in projection_shapes(config)}
    places: list[tuple[Projection, int | None]] = [
        (projection, layer) for layer in range(shapes["qkv_proj"].count) for projection in LAYER_PROJECTIONS
    ]
    places.append(("lm_head", None))
    sizes = {
        projection: shapes[projection].module_bytes(INT8_BYTES if computes_in_int8(variant, projection) else BF16_BYTES)
        for projection in PROJECTIONS
    }
    listed = variant.projections
    if variant.packed_weight_mode == "explicit":
        # Regions are of linears without a bias, and what no region reads is not packed.
        listed = [projection for projection in PROJECTIONS if not shapes[projection].bias]
    return tuple(Module(name, layer, sizes[name]) for name, layer in places if name in listed)


def computes_in_int8(variant: Variant, projection: Projection) -> bool:
    """Whether the projection is of those that a W8A8 checkpoint has quantised."""
    return variant.linear == "w8a8" and projection in LAYER_PROJECTIONS


def packing(config: Mapping[str, Any], variant: Variant) -> Packing:
    """What is packed, and what stays row-major, under the variant's budget: of all bytes that it would pack without
    one, `packed_budget_percent`, rounded down to whole bytes.
    """
    listed = modules(config, variant)
    if variant.packed_budget_percent is None:
        return Packing(listed, (), None)
    budget = sum(module.bytes for module in listed) * variant.packed_budget_percent // 100
    packed, row_major, left = [], [], budget
    for module in listed:
        if module.bytes <= left:
            packed.append(module)
            left -= module.bytes
        else:
            row_major.append(module)
    return Packing(tuple(packed), tuple(row_major), budget)
