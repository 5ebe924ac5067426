"""Two libraries' costs as Markdown, side by side."""

from __future__ import annotations

from rvvbench.kernel_model.report import Comparison, Modelled, Row
from rvvbench.kernel_model.table import rate_text, rates_of, si, sizes, table

NOTE = """\
Modelled, not measured: the operators of two libraries, each called by torch on one thread in the runtime image;
executed blocks of the library's own code counted under {qemu}, priced by {llvm} as {cpu}; one core, data in L1. What a
library calls of others is not counted. `speed` is the other's cycles over ours.

- ours: {ours} (SHA-256 {ours_sha256})
- other: {other} (SHA-256 {other_sha256})"""

HEADER = (
    "shape", "", "ours instructions", "other instructions", "ours cycles", "other cycles", "ours {}",
    "other {}", "speed",
)  # fmt: skip
UNIT = "MACs/cycle"
ELEMENTWISE_UNIT = "cycles/element"


def markdown(comparison: Comparison) -> str:
    """The whole comparison, a table for each operation and type."""
    tools, ours, other = comparison.tools, comparison.ours, comparison.other
    parts = [
        "# Modelled cost of two libraries on a SpacemiT X60\n",
        NOTE.format(
            qemu=tools.qemu,
            llvm=tools.llvm,
            cpu=tools.priced_as,
            ours=ours.name,
            ours_sha256=ours.sha256,
            other=other.name,
            other_sha256=other.sha256,
        ),
        "",
    ]
    pairs = list(zip(ours.rows, other.rows, strict=True))
    for operation, kind in dict.fromkeys((row.operation, row.type) for row, _ in pairs):
        lines = [_cells(*pair) for pair in pairs if (pair[0].operation, pair[0].type) == (operation, kind)]
        unit = ELEMENTWISE_UNIT if any(row.elements for row, _ in pairs if row.operation == operation) else UNIT
        header = [name.format(unit) for name in HEADER]
        parts += [f"## {operation}, {kind}\n", table(header, lines), ""]
    return "\n".join(parts)


def _cells(ours: Row, other: Row) -> list[str]:
    reasons = [f"{name}: {row.reason}" for name, row in (("ours", ours), ("other", other)) if row.modelled is None]
    both = (ours.modelled, other.modelled)
    speed = f"{both[1].cycles_in_order / both[0].cycles_in_order:.2f} x" if both[0] and both[1] else "-"
    return [
        f"{ours.model} {ours.layer} {sizes(ours)}",
        "; ".join(reasons),
        *(si(one.instructions) if one else "-" for one in both),
        *(si(one.cycles_in_order) if one else "-" for one in both),
        *(_rate(one) for one in both),
        speed,
    ]


def _rate(modelled: Modelled | None) -> str:
    return rate_text(rates_of(modelled)[0]) if modelled else "-"
