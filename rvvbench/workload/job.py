"""What a kind of workload adds to a run: its specs, its rows, its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rvvbench.manifest.models import CacheState, Variant
from rvvbench.manifest.regional import Artifact
from rvvbench.observe.stretch import window_of
from rvvbench.record.build import Ran
from rvvbench.record.events import EventsRead
from rvvbench.record.schema import Heading, Row
from rvvbench.workload.follow import Told
from rvvbench.workload.observation import Watch
from rvvbench.workload.spec import Identity


@dataclass(frozen=True)
class Measured:
    """What one fresh process left: its events, how its container ended, and what was observed around it.

    `cache` is what it did to its cache (`rvvbench/cache-proof/1`), None where it had none.
    """

    read: EventsRead
    container_exit_code: int
    watch: Watch
    cache: Mapping[str, Any] | None = None

    def ran(self, load: str | None = None) -> Ran:
        """The same for a row: that of `load`, or the only one of a process without loads."""
        observation = self.watch.observation(window_of(self.read.events, load))
        return Ran(self.read, self.container_exit_code, observation, self.cache)


class Job(Protocol):
    """One experiment's workload on one target."""

    def heading(self) -> Heading:
        """What every table of the record says above itself."""

    def spec(self, variant: Variant, identity: Identity) -> dict[str, Any]:
        """The spec of one fresh process."""

    def artifacts(self, variant: Variant) -> tuple[Artifact, ...]:
        """The compiled artifacts that the workload takes, or may take; none where `variant` compiles nothing."""

    def rows(self, variant: Variant, processes: Sequence[Measured], state: CacheState = "none") -> list[Row]:
        """The rows that the fresh processes of `variant` make, of which each had a cache in this state."""

    def teller(self) -> Told:
        """A new teller of one process's events."""
