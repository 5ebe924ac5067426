"""Markdown (GitHub's dialect) of tables."""

from __future__ import annotations

from collections.abc import Sequence


def markdown_line(cells: Sequence[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def escaped(text: str) -> str:
    """Text that Markdown shows as it is, also inside a table."""
    for character in "\\|*_`<>[]":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
