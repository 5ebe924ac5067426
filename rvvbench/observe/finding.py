"""What an observation found: one sentence with its figures, under an id that stays."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """`id` is for machines and stays stable; `text` names what was observed and what would have been right."""

    id: str
    text: str
