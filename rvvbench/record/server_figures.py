"""What each figure of the server beneath one load means, and how it is derived: start-up, memory, batches.

A server runs load after load: its memory is what was read up to the end of the load and includes earlier ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rvvbench.record.attestation import of_load
from rvvbench.record.events import named
from rvvbench.record.metrics import Definition, definition_of, twin
from rvvbench.record.schema import Expected
from rvvbench.record.server_passes import decoded_at_full_percent
from rvvbench.record.timeline import Events, NotMeasuredError, largest_reading, largest_tree_rss, number, only

NOT_OF_THE_SERVER = ("supervisor", "runner")
"""Roles whose memory is the harness's own."""


@dataclass(frozen=True)
class Beneath:
    """The events of one process, and the load that is looked at."""

    events: Events
    expected: Expected

    @property
    def load(self) -> str:
        assert self.expected.load is not None
        return self.expected.load.name

    def up_to_the_end(self) -> Events:
        """Everything up to the end of the load, and the memory that was read right after it.

        Raises: NotMeasuredError where the load did not end.
        """
        for index, event in enumerate(self.events):
            if event.get("event") == "load_end" and event.get("load") == self.load:
                after = named(self.events[index + 1 :], "memory")
                return [*self.events[: index + 1], *(one for one in after if one.get("phase") == self.load)]
        raise NotMeasuredError(f"load {self.load} did not end")

    def memory(self) -> Events:
        """The readings of the server's processes."""
        readings = named(self.up_to_the_end(), "memory")
        return [event for event in readings if event.get("role") not in NOT_OF_THE_SERVER]


def _startup_s(one: Beneath) -> float:
    return number(only(one.events, "server_listening"), "seconds", "server_listening")


def _ready_s(one: Beneath) -> float:
    return number(only(one.events, "server_ready"), "seconds", "server_ready")


def _vm_hwm_bytes(one: Beneath) -> float:
    return largest_reading(one.memory(), "vm_hwm_bytes")


def _vm_hwm_sum_bytes(one: Beneath) -> float:
    return _largest_sum(one, "vm_hwm_bytes")


def _pss_sum_bytes(one: Beneath) -> float:
    return _largest_sum(one, "pss_bytes")


def _largest_sum(one: Beneath, field: str) -> float:
    """Largest sum over the server's processes that was read in one phase; a process without the field leaves none."""
    phases: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for event in one.memory():
        phases[str(event.get("phase"))].append(event)
    if not phases:
        raise NotMeasuredError("no memory event of the server")
    return max(sum(number(event, field, "memory") for event in readings) for readings in phases.values())


def _tree_rss_bytes(one: Beneath) -> float:
    return largest_tree_rss(one.up_to_the_end())


def _decoded_at_full_percent(one: Beneath) -> float:
    return decoded_at_full_percent(one.expected, of_load(one.events, one.load))


SERVER_FIGURES: tuple[tuple[Definition, Callable[[Beneath], float]], ...] = (
    (
        Definition(
            "startup.first_answer/1",
            "startup_s",
            "s",
            "Start-up",
            "From the spawn of the server to its first HTTP answer. In no other figure.",
            "server_listening.seconds",
        ),
        _startup_s,
    ),
    (
        Definition(
            "startup.first_generation/1",
            "ready_s",
            "s",
            "Ready",
            "From the spawn of the server to the end of its first generation. In no other figure.",
            "server_ready.seconds",
        ),
        _ready_s,
    ),
    (definition_of("peak_rss_bytes", emulated=False), _vm_hwm_bytes),
    (
        Definition(
            "peak_rss.vm_hwm_sum/1",
            "peak_rss_sum_bytes",
            "bytes",
            "Peak RSS sum",
            "Sum over the server's processes of each one's VmHWM, largest of the readings up to the end of the load: "
            "they need not have peaked together, and a page that two of them share counts twice, so an upper bound.",
            "max over readings of sum(VmHWM)",
        ),
        _vm_hwm_sum_bytes,
    ),
    (definition_of("peak_rss_tree_bytes", emulated=False), _tree_rss_bytes),
    (
        Definition(
            "pss.sum_at_phases/1",
            "pss_sum_bytes",
            "bytes",
            "PSS sum",
            "Sum over the server's processes of PSS (a page shared by k processes counts 1/k), largest of the "
            "readings after start-up and after each load up to this one; not a peak.",
            "max over readings of sum(PSS)",
        ),
        _pss_sum_bytes,
    ),
    (
        Definition(
            "batch.decoded_at_full/1",
            "decoded_at_full_batch_percent",
            "%",
            "Full batch",
            "Of the tokens after the first of each request, those that were decoded in passes with as many rows as "
            "requests can be in flight. From the server's own counts of the rows of its projections.",
            "100 * sum over decode passes with M = in_flight of M / sum over decode passes of M",
        ),
        _decoded_at_full_percent,
    ),
)

SERVER_DEFINITIONS: Mapping[str, Definition] = {
    definition.id: definition for native, _ in SERVER_FIGURES for definition in (native, twin(native))
}
"""By id; those of memory are also `metrics.DEFINITIONS`."""
