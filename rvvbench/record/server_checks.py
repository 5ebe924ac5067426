"""Is what a serving row expects what its server did? Pure, as `validity`, of which these are the checks for a load.

Each takes what is expected and a process, and gives the reasons why the row is not valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rvvbench.record.arrivals import arrival_reasons
from rvvbench.record.attestation import Event, Found, kernel_reasons, named_of, of_load
from rvvbench.record.client_lag import lag_reasons
from rvvbench.record.events import named
from rvvbench.record.phases import once, ordered
from rvvbench.record.request_timeline import loads, requests
from rvvbench.record.schema import Expected, Process
from rvvbench.record.server_passes import pass_reasons
from rvvbench.record.serving_validity import assess_load
from rvvbench.record.timeline import NS_PER_S, NotMeasuredError, is_count, is_number

WARMUP = "-warmup"
"""A load's warm-up is the load of its name and this ending."""

STARTUP_AGREES_S = 0.25
"""A busy machine lets some 0.1 s pass between the spawn, from which a start-up is counted, and its event."""

_OF_ONE_REQUEST = ("request-failed", "request-timeout")
CROSS_CHECK = "cross_check"
"""The phase of an error while SGLang's own tool asks the server."""


def errors_of(expected: Expected, events: Sequence[Event]) -> list[Event]:
    """The errors that concern the row: all but those of requests in another load, and whatever ended a cross-check,
    which comes when every load is complete.
    """
    errors = named(events, "error")
    if expected.load is None:
        return errors
    own = (expected.load.name, expected.load.name + WARMUP)
    others = {load.name for load in loads(events)} - set(own)
    return [
        error
        for error in errors
        if error.get("phase") != CROSS_CHECK
        and (error.get("type") not in _OF_ONE_REQUEST or not _places(error) & others)
    ]


def _places(error: Event) -> set[str]:
    return {place for place in (error.get("phase"), error.get("load")) if isinstance(place, str)}


def server_phases(expected: Expected, process: Process) -> Found:
    """The server started, was asked once to be ready, and then served the load; each phase once and in this order."""
    yield from once(process, "supervisor_start", "process_start", "server_listening", "server_ready", "environment")
    assert expected.load is not None
    name = expected.load.name
    warmup = _moments(f"load {name}{WARMUP}", named_of(process.events, "load_start", name + WARMUP)[:1])
    warmed = _moments(f"the end of load {name}{WARMUP}", named_of(process.events, "load_end", name + WARMUP)[-1:])
    own = _moments(f"load {name}", named_of(process.events, "load_start", name)[:1])
    first = warmup or own
    yield from ordered([*_all(process, "process_start", "server_listening", "server_ready"), *first])
    yield from ordered([*_all(process, "environment"), *first])
    yield from ordered([*warmed, *own])
    for load in (name + WARMUP, name):
        yield from _encloses(process.events, load)
    yield from _started_up(process.events)


def _encloses(events: Sequence[Event], load: str) -> Found:
    """No request of a load was due before it, nor ended after it."""
    asked = requests(events, load)
    for start in named_of(events, "load_start", load)[:1]:
        for first in sorted(asked, key=lambda one: one.scheduled_ns)[:1]:
            due = (f"request {first.id}", first.scheduled_ns)
            yield from ordered([*_moments(f"load {load}", [start]), due])
    for end in named_of(events, "load_end", load)[-1:]:
        ended = [(one.end_ns, one.id) for one in asked if one.end_ns is not None]
        for end_ns, id_ in sorted(ended)[-1:]:
            last = (f"the end of request {id_}", end_ns)
            yield from ordered([last, *_moments(f"the end of load {load}", [end])])


def _started_up(events: Sequence[Event]) -> Found:
    """What is said of the start-up is what lies between its events."""
    for start in named(events, "process_start")[:1]:
        for name in ("server_listening", "server_ready"):
            for event in named(events, name):
                seconds, moments = event.get("seconds"), (start.get("t_ns"), event.get("t_ns"))
                if not is_number(seconds):
                    yield "startup-time", f"{name} has no seconds: {seconds}"
                    continue
                if not is_count(moments[0]) or not is_count(moments[1]):
                    continue  # of their order `ordered` tells
                between_s = (moments[1] - moments[0]) / NS_PER_S
                if not abs(seconds - between_s) <= STARTUP_AGREES_S:
                    text = f"{name} says {seconds:.3f} s after the start, its time is {between_s:.3f} s after it"
                    yield "startup-time", text


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
    start = named_of(process.events, "load_start", declared.name)[0]
    yield from arrival_reasons(declared, start, requests(process.events, declared.name))
    yield from lag_reasons(process.events, declared.name)
    for reason in assess_load(
        found,
        requests(process.events),
        requests=declared.requests,
        input_len=expected.input_len,
        output_len=expected.output_len,
    ):
        yield reason.id, reason.text


def _attested(expected: Expected, process: Process) -> Found:
    assert expected.load is not None
    try:
        attestation = of_load(process.events, expected.load.name)
    except NotMeasuredError as error:
        yield "attestation", str(error)
        return
    yield from kernel_reasons(expected, attestation)
    yield from pass_reasons(expected, attestation)


SERVING_CHECKS = (server_phases, _warmed_up, _loaded, _attested)
"""What a serving row's process must show beyond what every process must, given what is expected."""
