"""Giving the kernels to a model that was just loaded, and saying in one line what is active and why."""

from __future__ import annotations

import os
import sys
from typing import Any

from sglang_rvv import kernels, policy
from sglang_rvv.policy import Policy
from sglang_rvv.settings import Settings

_lines: list[str] = []
_linears: list[Any] = []


def prepare(model: Any) -> None:
    """Route what the policy of this process names, and say so."""
    from sglang.srt.server_args import get_global_server_args

    from sglang_rvv import elementwise, linear

    decided = policy.decide(Settings.from_environment(), get_global_server_args())
    linears = linear.prepare(model, decided)
    _linears.append(linears)
    linear.check_w8a8_is_ours(model)
    rows = elementwise.prepare(model, ours=decided.elementwise)
    say(active(type(model).__name__, decided, linears, rows))


def active(model: str, decided: Policy, linears: Any, rows: dict[str, tuple[int, int]]) -> str:
    """The start-up line: kernels, what is ours, what is torch's, and why."""
    ours: list[str] = []
    torch: list[str] = []
    (ours if decided.attention else torch).append(f"attention{' (INT8 cache)' if decided.int8_cache else ''}")
    if decided.regional.active:
        regions = linears.regions.policy
        small = "with" if regions.small_batch else "without"
        how = f"{regions.report()['mode']}, {small} small batches"
        ours.append(f"{len(linears.regions.compiled)} linears compiled by region ({how})")
    if decided.linears or decided.regional.packs:
        budget = linears.budget
        packed = f"{len(budget.packed)} linears packed ({sum(budget.packed.values())} bytes"
        ours.append(f"{packed}, budget {budget.limit_bytes})")
        if budget.left_out:
            left = f"{len(budget.left_out)} row-major ({sum(budget.left_out.values())} bytes would not fit: "
            ours.append(f"{left}{shortened(list(budget.left_out))})")
    if linears.kept:
        torch.append(f"{len(linears.kept)} linears ({shortened(linears.kept)})")
    for operation, (with_kernels, without) in rows.items():
        if with_kernels:
            ours.append(f"{with_kernels} x {operation}")
        if without:
            torch.append(f"{without} x {operation}")
    found = str(kernels.capability()) if decided.uses_kernels else "kernels off"
    why = f"; because {', '.join(decided.reasons)}" if decided.reasons else ""
    return (
        f"sglang_rvv: {model} on {os.uname().machine}: {found}; ours: {', '.join(ours) or 'nothing'}; "
        f"torch: {', '.join(torch) or 'nothing'}{why}"
    )


def shortened(names: list[str], most: int = 4) -> str:
    """The first names, and how many more."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def say(line: str) -> None:
    """On stderr, and kept for whoever asks what is active."""
    _lines.append(line)
    print(line, file=sys.stderr, flush=True)


def report() -> dict[str, Any]:
    """`lines`: all start-up lines of this process. Of each model: `budget_bytes` for packed weights, and `packed` and
    `row_major` {full name of a linear: bytes of its packed copy}, the latter for want of room; where regions are
    compiled also `regional`, the resolved policy and the regions (`regional.install.Regions.report`).
    """
    models: list[dict[str, Any]] = [
        {
            "budget_bytes": linears.budget.limit_bytes,
            "packed": dict(linears.budget.packed),
            "row_major": dict(linears.budget.left_out),
        }
        for linears in _linears
    ]
    for model, linears in zip(models, _linears, strict=True):
        if linears.regions is not None:
            model["regional"] = linears.regions.report()
    return {"lines": list(_lines), "models": models}
