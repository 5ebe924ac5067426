"""What each figure of one load of a serving run means (a concurrency, or a request rate), and how it is derived from
its requests. A load's figure needs every request: one that failed leaves it null, with the request in the reason.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rvvbench.record.metrics import Definition, T, figure
from rvvbench.record.percentile import nearest_rank, samples_needed
from rvvbench.record.request_figures import (
    DECODE_RATE,
    E2E,
    QUEUE,
    REQUEST_FIGURES,
    TPOT,
    TTFT,
    decode_rate,
    e2e_s,
    gaps_s,
    queue_s,
    sent_ns,
    several,
    tpot_s,
    ttft_s,
    twin,
    whole,
)
from rvvbench.record.request_timeline import RequestTimeline
from rvvbench.record.schema import Figure
from rvvbench.record.timeline import NS_PER_S, NotMeasuredError

Timelines = Sequence[RequestTimeline]

PERCENTS = (90, 95, 99)


def _each(derive: Callable[[RequestTimeline], float]) -> Callable[[Timelines], list[float]]:
    """The figure of every request; one without it leaves none for the load, so that no slow one drops out unseen."""

    def values(requests: Timelines) -> list[float]:
        return [_of(request, derive) for request in _some(requests)]

    return values


def _all_gaps_s(requests: Timelines) -> list[float]:
    return [gap for request in _some(requests) for gap in _of(request, gaps_s)]


def _some(requests: Timelines) -> Timelines:
    if not requests:
        raise NotMeasuredError("no request")
    return requests


def _of(request: RequestTimeline, derive: Callable[[RequestTimeline], T]) -> T:
    try:
        return derive(request)
    except NotMeasuredError as error:
        raise NotMeasuredError(f"request {request.id}: {error}") from error


def _wall_s(requests: Timelines) -> float:
    last_ns = max(_of(request, whole)[-1].t_ns for request in _some(requests))
    return (last_ns - min(_of(request, sent_ns) for request in requests)) / NS_PER_S


def _input_tokens(request: RequestTimeline) -> int:
    if request.prompt_tokens is None:
        raise NotMeasuredError("the server did not count its prompt")
    return request.prompt_tokens


def _throughput_total(requests: Timelines) -> float:
    wall_s = _wall_s(requests)
    return sum(_of(request, _input_tokens) + request.tokens for request in requests) / wall_s


def _throughput_output(requests: Timelines) -> float:
    wall_s = _wall_s(requests)
    return sum(request.tokens for request in requests) / wall_s


def _decode_rate_of_all(requests: Timelines) -> float:
    spans = sorted((found[0].t_ns, found[-1].t_ns) for found in (_of(request, several) for request in _some(requests)))
    covered_ns, end_ns = 0, 0
    for start, end in spans:
        covered_ns += max(0, end - max(start, end_ns))
        end_ns = max(end_ns, end)
    return sum(request.tokens - request.arrivals[0].tokens for request in requests) * NS_PER_S / covered_ns


def in_flight_peak(requests: Timelines) -> float:
    """Most requests that were in flight at once, from the sending to the end of the answer.

    Raises: NotMeasuredError where one has no end.
    """
    changes: list[tuple[int, int]] = []
    for request in _some(requests):
        _of(request, whole)
        assert request.end_ns is not None
        # At one moment an end counts before a sending: a slot that is filled at once was never two requests.
        changes += [(_of(request, sent_ns), 1), (request.end_ns, -1)]
    now = peak = 0
    for _, change in sorted(changes):
        now += change
        peak = max(peak, now)
    return float(peak)


_OF_A_LOAD: tuple[tuple[Definition, Callable[[Timelines], float]], ...] = (
    (
        Definition(
            "decode_rate.all_requests/1",
            "decode_rate_global_tokens_per_s",
            "tok/s",
            "Global decode rate",
            "Tokens after the first chunks of all requests, over the time in which at least one request was decoding "
            "(between its first and its last chunk). The prefill of another request counts only while one decodes.",
            "sum(n - n_first_chunk) / |union of [t_first_chunk, t_last]|",
        ),
        _decode_rate_of_all,
    ),
    (
        Definition(
            "throughput.serving_total/1",
            "throughput_total_tokens_per_s",
            "tok/s",
            "Total throughput",
            "Input tokens (as the server counted them) and output tokens of all requests over the wall time.",
            "sum(prompt_tokens + n) / wall",
        ),
        _throughput_total,
    ),
    (
        Definition(
            "throughput.serving_output/1",
            "throughput_output_tokens_per_s",
            "tok/s",
            "Output throughput",
            "Output tokens of all requests over the wall time, prefills included.",
            "sum(n) / wall",
        ),
        _throughput_output,
    ),
    (
        Definition(
            "wall.first_sent_to_last_token/1",
            "wall_s",
            "s",
            "Wall",
            "From the sending of the first request to the last token of any. Start-up and warm-up are before it.",
            "max(t_last) - min(sent)",
        ),
        _wall_s,
    ),
    (
        Definition(
            "in_flight.peak/1",
            "in_flight_peak",
            "requests",
            "In flight",
            "Most requests that were in flight at once, from the sending to the end of the answer.",
            "max over time of requests in flight",
        ),
        in_flight_peak,
    ),
)


@dataclass(frozen=True)
class _Pool:
    """What a load's statistics are taken of: `values` of its requests. `base` says what one value is."""

    base: Definition
    stem: str
    over: str
    values: Callable[[Timelines], list[float]]
    percents: tuple[int, ...] = PERCENTS


_ITL = Definition(
    "itl.received/1",
    "itl_s",
    "s",
    "ITL",
    "Inter-token latency: between the receipt of neighbouring tokens.",
    "t_(i+1) - t_i",
)

_POOLS = (
    _Pool(TTFT, "ttft", "over the requests", _each(ttft_s)),
    _Pool(TPOT, "tpot", "over the requests", _each(tpot_s)),
    _Pool(_ITL, "itl", "over all tokens after first chunks (those of one request are not independent)", _all_gaps_s),
    _Pool(DECODE_RATE, "decode_rate", "over the requests", _each(decode_rate), percents=()),
    _Pool(E2E, "e2e", "over the requests", _each(e2e_s)),
    _Pool(QUEUE, "queue", "over the requests", _each(queue_s)),
)


def _percentile(percent: int, values: Callable[[Timelines], list[float]]) -> Callable[[Timelines], float]:
    def derive(requests: Timelines) -> float:
        found, needed = values(requests), samples_needed(percent)
        if len(found) < needed:
            raise NotMeasuredError(f"{len(found)} samples: the {percent}th percentile needs {needed}")
        return nearest_rank(found, percent)

    return derive


def _statistics(pool: _Pool) -> list[tuple[Definition, Callable[[Timelines], float]]]:
    base = pool.base
    stem, _, version = base.id.rpartition("/")

    def defined(statistic: str, what: str) -> Definition:
        return Definition(
            f"{stem}_of_requests_{statistic}/{version}",
            f"{pool.stem}_{statistic}{base.name.removeprefix(pool.stem)}",
            base.unit,
            f"{base.title} {statistic}",
            f"{what} {pool.over}, of: {base.text}",
            f"{statistic}({base.formula})",
        )

    def percentile(percent: int) -> str:
        needed = samples_needed(percent)
        return f"The {percent}th percentile (nearest rank; null below {needed} samples: Wilks 1941, 95 % confidence)"

    return [
        (defined("median", "Median"), lambda requests: float(statistics.median(pool.values(requests)))),
        (defined("min", "Smallest"), lambda requests: min(pool.values(requests))),
        (defined("max", "Largest"), lambda requests: max(pool.values(requests))),
        *((defined(f"p{p}", percentile(p)), _percentile(p, pool.values)) for p in pool.percents),
    ]


LOAD_FIGURES = (*_OF_A_LOAD, *(entry for pool in _POOLS for entry in _statistics(pool)))

SERVING_DEFINITIONS: Mapping[str, Definition] = {
    definition.id: definition
    for native, _ in (*REQUEST_FIGURES, *LOAD_FIGURES)
    for definition in (native, twin(native))
}
"""Every definition of a serving run by id; none is one of `metrics.DEFINITIONS`."""

LOAD_NAMES: tuple[str, ...] = tuple(native.name for native, _ in LOAD_FIGURES)
"""The keys of a load's figures."""


def derive_load(requests: Timelines, *, emulated: bool) -> dict[str, Figure]:
    """Every figure of the requests of one load."""
    return {native.name: figure(native, emulated, derive, requests) for native, derive in LOAD_FIGURES}
