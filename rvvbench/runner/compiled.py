"""What a process compiled: the plugin's own report, as the fields of the `compiled` event."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from . import pins
from .spec import Common

CACHE = Path("/rvvbench/cache")
_COUNTERS = ("inductor", "aot_autograd")


def report(spec: Common) -> dict[str, Any] | None:
    """`sglang_rvv.regional.report()` of this process; None where nothing is compiled, or the plugin cannot."""
    if not spec.variant.compiles:
        return None
    try:
        from sglang_rvv import regional
    except ImportError:
        return None
    told: dict[str, Any] = regional.report()
    return told


def graphs(told: Mapping[str, Any] | None) -> int | None:
    """How many graphs a report has; None without one."""
    return None if told is None else int(told["graphs"])


def fields(told: Mapping[str, Any], graphs_before: int | None, cache: Path = CACHE) -> dict[str, Any]:
    """The fields of the event. `graphs_before`: how many there were when measuring began; `cache`: whose files the
    artifacts are.
    """
    return {
        "graphs": told["graphs"],
        "graphs_before": graphs_before,
        **{group: dict(told.get(group) or {}) for group in _COUNTERS},
        "compile_seconds": told["compile_seconds"],
        "artifacts": [_artifact(one, cache) for one in told["artifacts"]],
    }


def _artifact(told: Mapping[str, Any], cache: Path) -> dict[str, Any]:
    """A path below the cache is told as from there, and hashed as it is now."""
    so = told.get("so")
    inside = None if so is None else _inside(str(so), cache)
    return {
        **{name: value for name, value in told.items() if name != "rows"},
        "bucket": told.get("bucket", told.get("rows")),
        "so": so if inside is None else inside,
        "sha256": None if inside is None else pins.file_sha256(cache / inside),
        "vector_instructions": told.get("vector_instructions"),
    }


def _inside(so: str, cache: Path) -> str | None:
    path = PurePosixPath(so)
    if not path.is_absolute():
        return so
    return path.relative_to(cache).as_posix() if path.is_relative_to(cache) else None
