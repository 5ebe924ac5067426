"""When the requests of an open loop were due, drawn again from what was declared: a load must show these times.

The same formula as the runner's, which `record` may not import; a test holds both together.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from rvvbench.record.attestation import Event, Found
from rvvbench.record.request_timeline import RequestTimeline
from rvvbench.record.schema import ExpectedLoad
from rvvbench.record.timeline import NS_PER_S, is_count

DRAWN_AGAIN_NS = 1
"""A logarithm may differ in its last bit from one machine's library to another's, and a Poisson arrival then by this;
fixed arrivals are exact."""

LATE_S = 0.05
"""A request that was sent this much after it was due, and more than a mean gap, did not arrive as it was drawn."""


def offsets_ns(arrivals: str, rate_per_s: float, seed: int, count: int) -> list[int]:
    """When each request is due after the load's start, the first at once: equal gaps ("fixed"), or exponential ones
    drawn by inversion, -ln(1 - u) / rate ("poisson").
    """
    if arrivals == "fixed":
        return [round(index * NS_PER_S / rate_per_s) for index in range(count)]
    uniform = random.Random(seed)
    offsets, due_s = [], 0.0
    for _ in range(count):
        offsets.append(round(due_s * NS_PER_S))
        due_s += -math.log(1.0 - uniform.random()) / rate_per_s
    return offsets


def arrival_reasons(declared: ExpectedLoad, start: Event, asked: Sequence[RequestTimeline]) -> Found:
    """Why the requests of an open loop were not due, or not sent, as they were drawn. `start` is its `load_start`."""
    if declared.arrivals is None or not declared.rate_per_s:
        return
    began_ns, seed = start.get("t_ns"), start.get("seed")
    if not is_count(began_ns):
        yield "arrivals", f"load {declared.name}: when it began cannot be read"
        return
    if declared.arrivals == "poisson" and not is_count(seed):
        yield "arrivals", f"load {declared.name}: its Poisson arrivals have no seed: {seed}"
        return
    if declared.arrivals == "fixed" and seed is not None:
        yield "arrivals", f"load {declared.name}: fixed arrivals have no seed, it says {seed}"
    if declared.seed is not None and seed != declared.seed:
        yield "arrivals", f"load {declared.name}: drawn from seed {seed}, declared {declared.seed}"
    tolerance_ns = DRAWN_AGAIN_NS if declared.arrivals == "poisson" else 0
    drawn = offsets_ns(declared.arrivals, declared.rate_per_s, seed if is_count(seed) else 0, len(asked))
    for one, offset_ns in zip(asked, drawn, strict=True):
        off_ns = one.scheduled_ns - began_ns - offset_ns
        if abs(off_ns) > tolerance_ns:
            what = f"{declared.arrivals} arrivals at {declared.rate_per_s:g}/s"
            text = f"request {one.id} was due {off_ns / NS_PER_S:+.9f} s off its time by {what}"
            yield "arrivals", f"load {declared.name}: {text}"
            return
    yield from _late(declared, asked, 1 / declared.rate_per_s)


def _late(declared: ExpectedLoad, asked: Sequence[RequestTimeline], gap_s: float) -> Found:
    for one in asked:
        late_s = 0.0 if one.sent_ns is None else (one.sent_ns - one.scheduled_ns) / NS_PER_S
        if late_s > max(LATE_S, gap_s):
            yield "arrivals", f"load {declared.name}: request {one.id} was sent {late_s:.3f} s after it was due"
            return
