"""A manifest as plain JSON data, as a record keeps it: whatever stands there, it can be asked."""

from __future__ import annotations

from typing import Any

HEAD = "lm_head"
"""The projection that occurs once, and that sees only the last token of each prompt."""

ABSENT = "not there"

Pair = tuple[str, Any, str, Any]
"""A place of the record, what stands there, where it must come from, and what stands there."""


def at(data: Any, *path: str) -> Any:
    """What stands at `path` in JSON data, or the text that it is not there."""
    for name in path:
        if not isinstance(data, dict) or name not in data:
            return ABSENT
        data = data[name]
    return data


def packed_projections(variant: dict[str, Any]) -> set[str]:
    """The projections that a variant packs."""
    named = variant.get("projections") if variant.get("linear") == "packed" else []
    return {str(projection) for projection in named} if isinstance(named, list) else set()
