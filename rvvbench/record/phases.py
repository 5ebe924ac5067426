"""The events that a process must have left once each, and in their order."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rvvbench.record.attestation import Found
from rvvbench.record.events import SCHEMA, named
from rvvbench.record.schema import Process


def once(process: Process, *names: str) -> Found:
    """Why there is not one event of each of these names, in events of the schema that is read."""
    for name in names:
        found = len(named(process.events, name))
        if found != 1:
            yield "events-incomplete", f"{found} {name} events, 1 belongs"
    for start in named(process.events, "supervisor_start"):
        if start.get("schema") != SCHEMA:
            yield "events-schema", f"the events are {start.get('schema')}, {SCHEMA} is read"


def ordered(moments: Sequence[tuple[str, Any]]) -> Found:
    """Where these moments (what, and its time in ns) do not come one after the other."""
    for (earlier, before), (later, after) in pairwise(moments):
        if type(before) is not int or type(after) is not int or before > after:
            yield "order", f"{earlier} at {before} ns does not come before {later} at {after} ns"
