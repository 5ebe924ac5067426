"""Is what a serving row expects what its server did? Pure, as `validity`, of which these are the checks for a load.

Each takes what is expected and a process, and gives the reasons why the row is not valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rvvbench.record.attestation import Event, Found, kernel_reasons, named_of, of_load
from rvvbench.record.events import named
from rvvbench.record.phases import once, ordered
from rvvbench.record.request_timeline import RequestTimeline, loads, requests
from rvvbench.record.schema import Expected, Process
from rvvbench.record.server_passes import pass_reasons
from rvvbench.record.serving_validity import assess_load
from rvvbench.record.timeline import NS_PER_S, NotMeasuredError

WARMUP = "-warmup"
"""A load's warm-up is the load of its name and this ending."""

_OF_ONE_REQUEST = ("request-failed", "request-timeout")
_CROSS_CHECK = "cross_check"


def errors_of(expected: Expected, events: Sequence[Event]) -> list[Event]:
    """The errors that concern the row: all but those of requests in another load, or in a cross-check after all."""
    errors = named(events, "error")
    if expected.load is None:
        return errors
    own = (expected.load.name, expected.load.name + WARMUP)
    others = {_CROSS_CHECK, *(load.name for load in loads(events))} - set(own)
    return [error for error in errors if error.get("type") not in _OF_ONE_REQUEST or not _places(error) & others]


def _places(error: Event) -> set[str]:
    return {place for place in (error.get("phase"), error.get("load")) if isinstance(place, str)}


def _server_phases(expected: Expected, process: Process) -> Found:
    yield from once(process, "supervisor_start", "process_start", "server_listening", "server_ready", "environment")
    assert expected.load is not None
    name = expected.load.name
    warmup = _moments(f"load {name}{WARMUP}", named_of(process.events, "load_start", name + WARMUP)[:1])
    warmed = _moments(f"the end of load {name}{WARMUP}", named_of(process.events, "load_end", name + WARMUP)[-1:])
    own = _moments(f"load {name}", named_of(process.events, "load_start", name)[:1])
    yield from ordered([*_all(process, "process_start", "server_listening", "server_ready"), *warmup])
    yield from ordered([*_all(process, "environment"), *warmup])
    yield from ordered([*warmed, *own])


def _all(process: Process, *names: str) -> list[tuple[str, Any]]:
    return [moment for name in names for moment in _moments(name, named(process.events, name))]


def _moments(what: str, events: Sequence[Event]) -> list[tuple[str, Any]]:
    return [(what, event.get("t_ns")) for event in events]


def _warmed_up(expected: Expected, process: Process) -> Found:
    """A closed loop of the measured shape, with as many requests as the load can have in flight, came to its end."""
    declared = expected.load
    assert declared is not None
    name = declared.name + WARMUP
    found = next((load for load in loads(process.events) if load.name == name), None)
    if found is None:
        yield "warmup", f"load {declared.name} had no warm-up: there is no load {name}"
        return
    if found.measured or not found.complete or (found.mode, found.concurrency) != ("closed", declared.in_flight):
        yield "warmup", f"load {name} is no complete warm-up for load {declared.name}: {found}"
    asked = requests(process.events, name)
    if len(asked) < declared.in_flight:
        yield (
            "warmup",
            f"load {name} had {len(asked)} requests, load {declared.name} can have {declared.in_flight} at once",
        )
    for one in asked:
        shape = (one.prompt_tokens, one.tokens)
        if one.error or one.end_ns is None:
            yield "warmup", f"request {one.id} of the warm-up did not end: {one.error or 'no request_end event'}"
        elif shape != (expected.input_len, expected.output_len):
            text = f"request {one.id} of the warm-up had {shape[0]} tokens in and {shape[1]} out"
            yield "warmup", f"{text}, declared {expected.input_len} and {expected.output_len}"


def _loaded(expected: Expected, process: Process) -> Found:
    declared = expected.load
    assert declared is not None
    found = next((load for load in loads(process.events) if load.name == declared.name), None)
    if found is None:
        yield "load-missing", f"there is no load {declared.name} in the events"
        return
    if not found.measured:
        yield "load", f"load {declared.name} was run as a warm-up"
    arrivals = named_of(process.events, "load_start", declared.name)[0].get("arrivals")
    kind = (found.mode, found.concurrency, arrivals, found.rate_per_s)
    if kind != (declared.mode, declared.concurrency, declared.arrivals, declared.rate_per_s):
        seen = f"{found.mode}, concurrency {found.concurrency}, arrivals {arrivals}, rate {found.rate_per_s}"
        wanted = f"{declared.mode}, {declared.concurrency}, {declared.arrivals}, {declared.rate_per_s}"
        yield "load", f"load {declared.name} was {seen}, declared {wanted}"
    if declared.arrivals == "fixed" and declared.rate_per_s:
        yield from _evenly(declared.name, requests(process.events, declared.name), declared.rate_per_s)
    for reason in assess_load(
        found,
        requests(process.events),
        requests=declared.requests,
        input_len=expected.input_len,
        output_len=expected.output_len,
    ):
        yield reason.id, reason.text


def _evenly(load: str, asked: Sequence[RequestTimeline], rate_per_s: float) -> Found:
    """Requests at fixed arrivals were due at equal distances. When they were sent is theirs to show: `queue_s`."""
    for index, one in enumerate(asked):
        due_ns = asked[0].scheduled_ns + round(index * NS_PER_S / rate_per_s)
        if abs(one.scheduled_ns - due_ns) > 1:
            text = f"request {one.id} was due {(one.scheduled_ns - due_ns) / NS_PER_S:+.6f} s off the rate"
            yield "arrivals", f"load {load}: {text} of {rate_per_s:g}/s"
            return


def _attested(expected: Expected, process: Process) -> Found:
    assert expected.load is not None
    try:
        attestation = of_load(process.events, expected.load.name)
    except NotMeasuredError as error:
        yield "attestation", str(error)
        return
    yield from kernel_reasons(expected, attestation)
    yield from pass_reasons(expected, attestation)


SERVING_CHECKS = (_server_phases, _warmed_up, _loaded, _attested)
"""What a serving row's process must show beyond what every process must, given what is expected."""
