"""The measured pass of one process, read from its events; what they do not hold is said, never filled in."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeGuard

from rvvbench.record.events import named

Events = Sequence[Mapping[str, Any]]
NS_PER_S = 1e9
_LARGEST = 2**63


class NotMeasuredError(Exception):
    """The events do not hold what a definition needs; the message becomes the figure's reason."""


@dataclass(frozen=True)
class Pass:
    """One forward pass of the whole batch."""

    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.start_ns) / NS_PER_S


def prefill_pass(events: Events) -> Pass:
    """The one prefill. Raises NotMeasuredError where there is none, more than one, or one without its times."""
    return _pass(only(events, "prefill"), "prefill")


def passes(events: Events) -> tuple[Pass, ...]:
    """The prefill and every decode step of a measured pass that ended, in order; as many as tokens per sequence.

    Raises: NotMeasuredError where the measured pass did not end, a step is missing or doubled, or the clock runs
    backwards.
    """
    first = prefill_pass(events)
    decodes = named(events, "decode")
    steps = [event.get("step") for event in decodes]
    if steps != list(range(1, len(steps) + 1)):
        raise NotMeasuredError(f"the decode steps are not 1, 2, ... in order: {_short(steps)}")
    only(events, "measured_end")
    all_passes = (first, *(_pass(event, f"decode step {step}") for event, step in zip(decodes, steps, strict=True)))
    for position, (earlier, later) in enumerate(pairwise(all_passes), start=1):
        if later.start_ns < earlier.end_ns:
            raise NotMeasuredError(f"decode step {position} starts before the pass before it ended")
    return all_passes


def several_passes(events: Events) -> tuple[Pass, ...]:
    """As `passes`, where there is an interval between tokens; raises NotMeasuredError for a single token too."""
    every = passes(events)
    if len(every) == 1:
        raise NotMeasuredError("one output token: there is no interval between tokens")
    return every


def _pass(event: Mapping[str, Any], what: str) -> Pass:
    start_ns, end_ns = event.get("start_ns"), event.get("end_ns")
    if not is_count(start_ns) or not is_count(end_ns):
        raise NotMeasuredError(f"{what} has no start_ns or end_ns in whole nanoseconds")
    if end_ns <= start_ns:
        raise NotMeasuredError(f"{what} ends at or before its start")
    return Pass(start_ns, end_ns)


def only(events: Events, name: str) -> Mapping[str, Any]:
    """The one event of that name; raises NotMeasuredError for none or several."""
    found = named(events, name)
    if len(found) != 1:
        raise NotMeasuredError(f"no {name} event" if not found else f"{len(found)} {name} events where one belongs")
    return found[0]


def input_tokens(events: Events) -> int:
    """Input tokens of the whole batch, as the prefill counted them."""
    tokens = only(events, "prefill").get("input_tokens")
    if not is_count(tokens) or tokens == 0:
        raise NotMeasuredError("the prefill event has no input_tokens")
    return tokens


def largest_reading(events: Events, field: str) -> float:
    """Largest `field` of the measured processes' memory events, in bytes, of those that could be read.

    Raises: NotMeasuredError where none could, with the first event's reason. The supervisor's own memory is left out.
    """
    measured = [event for event in named(events, "memory") if event.get("role") != "supervisor"]
    if not measured:
        raise NotMeasuredError("no memory event of a measured process")
    # Not every reading has every field: from outside there is no PSS, and a short process is never sampled.
    readings = [event for event in measured if event.get(field) is not None] or measured[:1]
    return max(number(event, field, "memory") for event in readings)


def largest_tree_rss(events: Events) -> float:
    """Largest sampled sum of RSS over the process tree, in bytes. Raises NotMeasuredError where none was sampled."""
    samples = named(events, "memory_tree")
    if not samples:
        raise NotMeasuredError("no sample of the process tree's memory")
    return max(number(sample, "rss_sum_bytes", "memory_tree") for sample in samples)


def number(event: Mapping[str, Any], field: str, what: str) -> float:
    """The positive number in `field`; raises NotMeasuredError, with the event's own reason where it gives one."""
    value = event.get(field)
    if not is_number(value) or not 0 < value < _LARGEST:
        reason = event.get("reason") if value is None else None
        raise NotMeasuredError(str(reason) if reason else f"a {what} event has no {field}")
    return float(value)


def is_count(value: Any) -> TypeGuard[int]:
    """A whole number that fits a clock or a counter."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


def is_number(value: Any) -> TypeGuard[int | float]:
    """A finite number; true and false are none, nor is a whole number that no float can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _short(values: Sequence[object]) -> str:
    text = ", ".join(str(value) for value in values[:12])
    return text + (", ..." if len(values) > 12 else "")
