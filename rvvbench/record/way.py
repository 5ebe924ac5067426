"""How a route is written in one word, so that routes of different artifacts are different routes."""

from __future__ import annotations

from typing import Any


def way(path: str, bucket: Any) -> str:
    """The path, and of a compiled one the rows of its artifact: `torch`, `inductor_packed[4]`."""
    return path if bucket is None else f"{path}[{bucket}]"
