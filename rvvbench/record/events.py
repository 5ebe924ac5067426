"""Reading the events of one process (`rvvbench/events/1`) so that a crash costs only the line it tore."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Event = dict[str, Any]

SCHEMA = "rvvbench/events/1"


@dataclass(frozen=True)
class EventsRead:
    """The events of one process in the order written, and what could not be read (empty: everything was)."""

    events: tuple[Event, ...]
    problems: tuple[str, ...] = ()


def read_events(path: Path) -> EventsRead:
    """Events of the file at `path`; a file that is not there gives no events and says so."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return EventsRead((), (f"no events: {path.name} was never written",))
    except OSError as error:
        return EventsRead((), (f"no events: {path.name} cannot be read ({error.strerror})",))
    return parse_events(data)


def parse_events(data: bytes) -> EventsRead:
    """Events of JSON lines.

    A line that is no JSON object with an `event` name is left out and reported by number; every other line is kept. A
    killed writer tears its last line, and another writer of the same file may go on behind it, so damage is looked
    for everywhere. NaN and infinities, which JSON lacks but Python writes, become the texts "NaN", "Infinity" and
    "-Infinity": kept and visible, never a number.
    """
    events: list[Event] = []
    problems: list[str] = []
    lines = data.split(b"\n")
    last = len(lines) if lines[-1] else len(lines) - 1
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        event = _event(line)
        if event is None:
            what = "the last line is torn" if number == last else "the line is damaged"
            problems.append(f"line {number}: {what}, {len(line)} bytes left out")
        else:
            events.append(event)
    return EventsRead(tuple(events), tuple(problems))


def named(events: Iterable[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    """The events of that name, in order."""
    return [event for event in events if event.get("event") == name]


def _event(line: bytes) -> Event | None:
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=str, parse_float=_finite)
        if b"\\u" in line:
            # An escaped half of a surrogate pair is a text that no UTF-8 file, so no record, can hold.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("event"), str):
        return None
    return value


def _finite(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text
