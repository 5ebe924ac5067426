"""What the table of a record says of packed weights: columns where a variant has a budget, and always a remark.

From the record's manifest; a valid row has proven that its modules took the paths that follow from it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from rvvbench.record.plain_manifest import at
from rvvbench.record.plain_model import NotDeclaredError, Packed, describes_operators, packed_of, plain_model
from rvvbench.record.schema import Record, Row
from rvvbench.record.table_parts import MIB, Cell, Column, significant

BUDGET, PACKED = "memory_budget", "packed_bytes"

_COLUMNS = (
    Column(BUDGET, "Budget", "MiB", text="What packed weights may take, as a share of what all of them would."),
    Column(PACKED, "Packed", "MiB", text="What packed weights take beside the row-major ones; of how many modules."),
)


def columns(record: Record) -> tuple[Column, ...]:
    """Budget and packed bytes, where a variant of the record has a budget."""
    budgets = [variant.get("packed_budget_percent") for variant in _variants(record).values()]
    return _COLUMNS if any(budget is not None for budget in budgets) else ()


def cell(record: Record, row: Row, column: Column) -> Cell:
    """The row's cell in one of these columns; bytes, shown in MiB."""
    variant = _variants(record).get(row.variant, {})
    try:
        found = packed_of(plain_model(at(record.manifest, "model", "config")), variant)
    except NotDeclaredError as error:
        return Cell("-", None, reason=str(error))
    if column.key == PACKED:
        modules = found.modules.total()
        of = f"{modules} of {modules + found.left.total()}" if modules + found.left.total() else None
        return Cell(significant(found.bytes / MIB), found.bytes, spread=of)
    if found.budget_bytes is None:
        return Cell("-", None, reason="the variant has no budget")
    share = f"{variant.get('packed_budget_percent')} %"
    return Cell(significant(found.budget_bytes / MIB), found.budget_bytes, spread=share)


def remarks(record: Record) -> Iterator[str]:
    """What each variant that packs has packed, and what did not fit into its budget."""
    said = []
    for name, variant in _variants(record).items():
        if not describes_operators(variant):
            continue
        try:
            found = packed_of(plain_model(at(record.manifest, "model", "config")), variant)
        except NotDeclaredError:
            continue
        if found.modules or found.left:
            said.append(f"{name} {_said(found)}")
    if said:
        yield f"Packed weights lie beside the row-major ones: {'; '.join(said)}."


def _said(found: Packed) -> str:
    text = f"{_mib(found.bytes)} in {found.modules.total()} modules"
    left = f" ({_listed(found.left)}, {_mib(found.left_bytes)}, stay row-major)" if found.left else ""
    return text + left


def _listed(modules: Counter[str]) -> str:
    return ", ".join(name if count == 1 else f"{count} {name}" for name, count in modules.items())


def _mib(count: int) -> str:
    return f"{significant(count / MIB)} MiB"


def _variants(record: Record) -> dict[str, dict[str, Any]]:
    listed = at(record.manifest, "variants")
    found = [variant for variant in listed if isinstance(variant, dict)] if isinstance(listed, list) else []
    return {str(variant.get("name")): variant for variant in found}
