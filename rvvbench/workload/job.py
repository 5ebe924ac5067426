"""What a kind of workload adds to a run: its specs, its rows, its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rvvbench.manifest.models import Variant
from rvvbench.record.build import Ran
from rvvbench.record.events import EventsRead, named
from rvvbench.record.schema import Heading, Row
from rvvbench.workload.follow import Told
from rvvbench.workload.observation import Watch
from rvvbench.workload.spec import Identity

Window = tuple[int, int]
"""Start and end on CLOCK_MONOTONIC, ns."""


@dataclass(frozen=True)
class Measured:
    """What one fresh process left: its events, how its container ended, and what was observed around it."""

    read: EventsRead
    container_exit_code: int
    watch: Watch

    @property
    def events(self) -> tuple[dict[str, Any], ...]:
        """The events that could be read."""
        return self.read.events

    def ran(self, window: Window | None) -> Ran:
        """The same for a row whose measurement lies in `window` (None: not known, the whole process)."""
        return Ran(self.read, self.container_exit_code, self.watch.observation(window))


class Job(Protocol):
    """One experiment's workload on one target."""

    def heading(self) -> Heading:
        """What every table of the record says above itself."""

    def spec(self, variant: Variant, identity: Identity) -> dict[str, Any]:
        """The spec of one fresh process."""

    def rows(self, variant: Variant, processes: Sequence[Measured]) -> list[Row]:
        """The rows that the fresh processes of `variant` make."""

    def teller(self) -> Told:
        """A new teller of one process's events."""


def between(events: Sequence[Mapping[str, Any]], start: str, end: str, **fields: Any) -> Window | None:
    """From the first event `start` to the first `end` that have these fields; None where one is not there."""
    found = [
        next((event.get("t_ns") for event in named(events, name) if _has(event, fields)), None) for name in (start, end)
    ]
    first, last = found
    return (first, last) if type(first) is int and type(last) is int and first <= last else None


def _has(event: Mapping[str, Any], fields: Mapping[str, Any]) -> bool:
    return all(event.get(name) == value for name, value in fields.items())
