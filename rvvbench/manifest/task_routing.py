"""The routing table of a task: its prompts are of any length, so that its passes have any number of rows. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar


class HasPath(Protocol):
    """A line of a routing table."""

    @property
    def projection(self) -> str: ...

    @property
    def path(self) -> str: ...


R = TypeVar("R", bound=HasPath)


def at_any_rows(routes: Iterable[R]) -> tuple[R, ...]:
    """The first line of each projection and path: what may be taken, whatever the rows."""
    found: dict[tuple[str, str], R] = {}
    for route in routes:
        found.setdefault((route.projection, route.path), route)
    return tuple(found.values())
