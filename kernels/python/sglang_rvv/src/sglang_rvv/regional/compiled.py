"""What this process has compiled, of all its models."""

from __future__ import annotations

from typing import Any, Protocol

COUNTERS = ("inductor", "aot_autograd")
"""The groups of torch's counters that tell of its caches."""


class Compiled(Protocol):
    """The regions of a model (`regional.callables.Callables`)."""

    def report(self) -> list[dict[str, Any]]:
        """One entry for each region."""


_models: list[Compiled] = []


def add(callables: Compiled) -> None:
    """Of a model whose regions are reported from now on."""
    _models.append(callables)


def is_on() -> bool:
    """Whether regions were given to a model in this process."""
    return bool(_models)


def report() -> dict[str, Any]:
    """Plain data: `graphs`, how many regions were called; `inductor` and `aot_autograd`, torch's counters;
    `compile_seconds`, of the first calls of all regions, in which they were compiled or loaded; `artifacts`, of each
    region `projection`, `rows` (its bucket), `out_features`, `in_features`, `mode`, and `so`, the path of its shared
    object, None where it is not known.
    """
    regions = [region for model in _models for region in model.report()]
    return {
        "graphs": len(regions),
        **torch_counters(),
        "compile_seconds": sum(region["seconds"] for region in regions),
        "artifacts": [
            {name: region[name] for name in ("projection", "rows", "out_features", "in_features", "mode", "so")}
            for region in regions
        ],
    }


def torch_counters() -> dict[str, dict[str, int]]:
    """The counters of TorchInductor and of AOTAutograd; empty where this process has compiled nothing."""
    if not _models:
        return {group: {} for group in COUNTERS}
    from torch._dynamo.utils import counters

    return {group: {str(name): int(count) for name, count in counters[group].items()} for group in COUNTERS}
