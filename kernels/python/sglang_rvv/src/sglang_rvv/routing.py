"""Which way every call of a projection went. Counted alike for torch and for packed linears, so that neither pays
more.
"""

from __future__ import annotations

from typing import TypedDict


class RouteCount(TypedDict):
    """`calls` calls of `projection` with `m` rows went by `path` ("packed" or "torch")."""

    projection: str
    m: int
    path: str
    calls: int


_calls: dict[tuple[str, int, str], int] = {}


def count(projection: str, m: int, path: str) -> None:
    """Count one call. About 0.1 microseconds: one dictionary read and one write."""
    key = (projection, m, path)
    _calls[key] = _calls.get(key, 0) + 1


def snapshot() -> list[RouteCount]:
    """The counts since the last reset, sorted by projection, rows and path."""
    return [
        {"projection": projection, "m": m, "path": path, "calls": calls}
        for (projection, m, path), calls in sorted(_calls.items())
    ]


def reset() -> None:
    """Forget all counts."""
    _calls.clear()
