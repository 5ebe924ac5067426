"""Which weights a variant packs and which stay row-major, as `rvvbench show` tells it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from rich.table import Table

from rvvbench.cli.console import out
from rvvbench.manifest.models import PROJECTIONS
from rvvbench.manifest.packing import Module, Packing


def plain(found: Packing) -> dict[str, Any]:
    """As JSON data, module by module in the order of packing."""

    def listed(modules: Sequence[Module]) -> list[dict[str, Any]]:
        return [{"module": one.name, "bytes": one.bytes} for one in modules]

    return {
        "budget_bytes": found.budget_bytes,
        "packed_bytes": found.packed_bytes,
        "packed": listed(found.packed),
        "row_major_bytes": found.row_major_bytes,
        "row_major": listed(found.row_major),
    }


def show(variant: str, found: Packing) -> None:
    """Which layers of a projection are packed and which stay row-major, and what that takes or would take."""
    budget = "" if found.budget_bytes is None else f", budget {found.budget_bytes:,} bytes ({found.budget_mib:g} MiB)"
    out.rule(f"packed weights of {variant}{budget}", align="left")
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("projection", "packed", "bytes", "row-major", "bytes if packed"):
        table.add_column(title, justify="right" if "bytes" in title else "left")
    for projection in PROJECTIONS:
        kinds = [[one for one in kind if one.projection == projection] for kind in (found.packed, found.row_major)]
        if any(kinds):
            cells = [cell for kind in kinds for cell in (_layers(kind), f"{sum(one.bytes for one in kind):,}")]
            table.add_row(projection, *cells)
    sums = ("", f"[bold]{found.packed_bytes:,}[/]", "", f"[bold]{found.row_major_bytes:,}[/]")
    table.add_row("[bold]all[/]", *sums)
    out.print(table)


def _layers(modules: Sequence[Module]) -> str:
    """`layers 0-3, 7`, or `yes` for the one module that is in no layer; `-` for none."""
    layers = [one.layer for one in modules if one.layer is not None]
    if not layers:
        return "yes" if modules else "-"
    runs = [[layer for _, layer in run] for _, run in groupby(enumerate(layers), key=lambda pair: pair[1] - pair[0])]
    kind = "layer " if len(layers) == 1 else "layers "
    return kind + ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
