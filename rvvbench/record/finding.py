"""What `verify` reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """Something in a record that does not follow from the rest of it. `id` is stable, `where` a place in the record."""

    id: str
    where: str
    text: str
