"""Did the client itself stand still while a load ran? Then its times are its own, not the server's. Pure.

The client writes how late its event loop was (`client_lag_max_s` and `client_lag_sum_s` of `load_end`); events of
before have no such fields. One hiccup that is longer than an inter-token latency spoils a percentile of it and no
median. A row is invalid where such stalls were also more than a twentieth of the load's time: its rates are wrong too.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from rvvbench.record.attestation import Event, Found, named_of
from rvvbench.record.request_figures import gaps_s, ttft_s
from rvvbench.record.request_timeline import requests
from rvvbench.record.schema import Record
from rvvbench.record.timeline import NotMeasuredError, is_number

FIELD = "client_lag_max_s"
SUM_FIELD = "client_lag_sum_s"
REMARKED_PERCENT = 10.0
"""Of the median ITL: a lag above it is told."""
TOLERATED_PERCENT = 5.0
"""Of the load's time: stalls longer than the median ITL that add up to more make the row invalid."""


def lag_reasons(events: Sequence[Event], load: str) -> Found:
    """Why the times of a load may be the client's: it stood still for longer than the median time between tokens, and
    for more than a twentieth of the load's time in all."""
    for end in named_of(events, "load_end", load)[-1:]:
        if FIELD not in end:
            continue
        lag_s = end[FIELD]
        if not is_number(lag_s) or lag_s < 0:
            yield "client-lag-unproven", f"load {load}: how long the client stood still is {lag_s}"
            continue
        sum_s = end.get(SUM_FIELD, lag_s)
        if not is_number(sum_s) or sum_s < 0:
            yield "client-lag-unproven", f"load {load}: how long the client stood still in all is {sum_s}"
            continue
        name, median_s = _median_s(events, load)
        share = _percent_of_load(events, load, end, max(sum_s, lag_s))
        if median_s is not None and lag_s > median_s and share > TOLERATED_PERCENT:
            text = f"the client itself stood still for {lag_s:.3f} s, longer than the median {name} of {median_s:.3f} s"
            yield "client-stalled", f"load {load}: {text}, and for {share:.0f} % of the load's time in all"


def lag_remarks(record: Record) -> Iterator[str]:
    """A line for each row whose client stood still for more than a tenth of its median ITL and yet is valid by that."""
    for row in record.rows:
        load = row.expected.load
        for process in row.processes if load else ():
            assert load is not None
            if any(lag_reasons(process.events, load.name)):
                continue
            for end in named_of(process.events, "load_end", load.name)[-1:]:
                name, median_s = _median_s(process.events, load.name)
                percent = 100 * end[FIELD] / median_s if FIELD in end and median_s else 0.0
                if percent > REMARKED_PERCENT:
                    told = f"The client itself stood still for up to {end[FIELD] * 1e3:.0f} ms while {row.name} ran"
                    yield f"{told}, {percent:.0f} % of its median {name}: a part of that latency is the client's."


def _percent_of_load(events: Sequence[Event], load: str, end: Event, stalled_s: float) -> float:
    """The share of the load's time that the client stood still; all of it where the time is not known."""
    starts = [one["t_ns"] for one in named_of(events, "load_start", load)]
    duration_s = (end["t_ns"] - starts[-1]) / 1e9 if starts else 0.0
    return 100 * stalled_s / duration_s if duration_s > 0 else 100.0


def _median_s(events: Sequence[Event], load: str) -> tuple[str, float | None]:
    """The median ITL in s; of requests of one token their TTFT. None where neither is known: the row is invalid."""
    asked = requests(events, load)
    try:
        return "ITL", statistics.median([gap for one in asked for gap in gaps_s(one)])
    except (NotMeasuredError, statistics.StatisticsError):
        pass
    try:
        return "TTFT", statistics.median([ttft_s(one) for one in asked])
    except (NotMeasuredError, statistics.StatisticsError):
        return "TTFT", None
