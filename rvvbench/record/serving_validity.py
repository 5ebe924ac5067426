"""Is what a load declared what the server did? Pure: what was asked for, against events and requests' timelines.

As in `validity`: what is not proven is not valid. Every reason of a request names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from rvvbench.record.attestation import Event, Found, kernel_reasons, named_of, of_load
from rvvbench.record.events import SCHEMA, named
from rvvbench.record.request_timeline import Load, RequestTimeline, loads, requests
from rvvbench.record.schema import Expected, Process, Reason
from rvvbench.record.server_passes import pass_reasons
from rvvbench.record.serving import in_flight_peak
from rvvbench.record.timeline import NS_PER_S, NotMeasuredError

WARMUP = "-warmup"
"""A load's warm-up is the load of its name and this ending."""

_OF_ONE_REQUEST = ("request-failed", "request-timeout")


def assess_load(
    load: Load, run: Sequence[RequestTimeline], *, requests: int, input_len: int, output_len: int
) -> tuple[Reason, ...]:
    """Why the load is not valid; empty where it is.

    `run` are the requests of the whole run, warm-up included, because a prompt that came before is not a new one.
    `requests`, `input_len` and `output_len` (tokens each) are what the manifest declares.
    """
    own = [request for request in run if request.load == load.name]
    found = [*_of_load(load, own, requests), *_repeated(own, run)]
    for request in own:
        found += [(id_, f"request {request.id}: {text}") for id_, text in _of_request(request, input_len, output_len)]
    return tuple(Reason(id=id_, text=text) for id_, text in found)


def _of_load(load: Load, own: Sequence[RequestTimeline], declared: int) -> Found:
    if len(own) != declared or load.requests != declared:
        yield "request-count", f"load {load.name}: {len(own)} requests were started, {declared} are declared"
    if not load.complete:
        yield "load-incomplete", f"load {load.name} did not come to its end"
    if load.mode == "closed":
        expected = min(load.concurrency or 0, declared)
        try:
            peak = in_flight_peak(own)
        except NotMeasuredError as error:
            yield "concurrency-unproven", f"load {load.name}: {error}"
        else:
            if peak != expected:
                yield "concurrency", f"load {load.name}: {peak:.0f} requests were in flight at most, not {expected}"


def _repeated(own: Sequence[RequestTimeline], run: Sequence[RequestTimeline]) -> Found:
    prompts = Counter(request.input_sha256 for request in run)
    for request in own:
        if request.input_sha256 is None:
            yield "prompt-unproven", f"request {request.id}: the digest of its prompt is not known"
        elif prompts[request.input_sha256] > 1:
            others = [o.id for o in run if o.input_sha256 == request.input_sha256 and o.id != request.id]
            yield "prompt-repeated", f"request {request.id}: its prompt is also that of {', '.join(others)}"


def _of_request(request: RequestTimeline, input_len: int, output_len: int) -> Found:
    for problem in request.problems:
        yield "events-damaged", problem
    if request.error:
        yield "request-error", f"failed after {request.tokens} tokens: {request.error}"
    elif request.end_ns is None:
        yield "request-not-ended", f"its answer did not end; {request.tokens} tokens came"
    elif request.finish_reason != "length":
        yield "finish-reason", f"finished by {request.finish_reason or 'nothing'}, not by its length"
    yield from _shape(request, input_len, output_len)
    if request.cached_tokens is None:
        yield "cached-tokens-unproven", "the server did not say how many prompt tokens came from its cache"
    elif request.cached_tokens:
        yield "cached-tokens", f"{request.cached_tokens} prompt tokens came from the server's cache, not from a prefill"


def _shape(request: RequestTimeline, input_len: int, output_len: int) -> Found:
    if request.input_tokens != input_len:
        yield "prompt-length", f"{request.input_tokens} prompt tokens were sent, declared {input_len}"
    if request.prompt_tokens is None:
        yield "prompt-length-unproven", "the server did not count its prompt"
    elif request.prompt_tokens != request.input_tokens:
        yield "prompt-length", f"the server counted {request.prompt_tokens} of {request.input_tokens} prompt tokens"
    if request.output_len != output_len:
        yield "output-length", f"{request.output_len} tokens were asked for, declared {output_len}"
    if request.tokens != output_len:
        yield "output-length", f"{request.tokens} tokens came, declared {output_len}"
    if request.completion_tokens is None:
        yield "token-count-unproven", "the server did not count its tokens"
    elif request.completion_tokens != request.tokens:
        yield "token-count", f"{request.tokens} token ids came, the server counted {request.completion_tokens}"


def errors_of(expected: Expected, events: Sequence[Event]) -> list[Event]:
    """The errors that concern the row: all but those of a single request in another load."""
    errors = named(events, "error")
    if expected.load is None:
        return errors
    own = (expected.load.name, expected.load.name + WARMUP)
    others = {load.name for load in loads(events)} - set(own)
    return [error for error in errors if error.get("type") not in _OF_ONE_REQUEST or not _places(error) & others]


def _places(error: Event) -> set[str]:
    return {place for place in (error.get("phase"), error.get("load")) if isinstance(place, str)}


def _server_phases(expected: Expected, process: Process) -> Found:
    for name in ("supervisor_start", "process_start", "server_listening", "server_ready", "environment"):
        found = len(named(process.events, name))
        if found != 1:
            yield "events-incomplete", f"{found} {name} events, 1 belongs"
    for start in named(process.events, "supervisor_start"):
        if start.get("schema") != SCHEMA:
            yield "events-schema", f"the events are {start.get('schema')}, {SCHEMA} is read"
    assert expected.load is not None
    name = expected.load.name
    warmup = _moments(f"load {name}{WARMUP}", named_of(process.events, "load_start", name + WARMUP)[:1])
    warmed = _moments(f"the end of load {name}{WARMUP}", named_of(process.events, "load_end", name + WARMUP)[-1:])
    own = _moments(f"load {name}", named_of(process.events, "load_start", name)[:1])
    for chain in (
        [*_once(process, "process_start", "server_listening", "server_ready"), *warmup],
        [*_once(process, "environment"), *warmup],
        [*warmed, *own],
    ):
        for (earlier, before), (later, after) in pairwise(chain):
            if type(before) is not int or type(after) is not int or before > after:
                yield "order", f"{earlier} at {before} ns does not come before {later} at {after} ns"


def _once(process: Process, *names: str) -> list[tuple[str, Any]]:
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
