"""What each figure of one request to a server means, and how it is derived from the request's timeline.

As in `metrics`: ids are versioned, each has an `_emulated` twin, and what cannot be measured is null with a reason.
An output token's time is the time at which the client received the chunk that brought it. How many tokens a first
chunk carries is chance, and when they were made is not known: rates count the tokens after the first chunk only.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from rvvbench.record.metrics import Definition, emulated_id, figure
from rvvbench.record.request_timeline import Chunk, RequestTimeline
from rvvbench.record.schema import Figure, Reason
from rvvbench.record.timeline import NS_PER_S, NotMeasuredError


def sent_ns(request: RequestTimeline) -> int:
    """When it was sent. Raises NotMeasuredError where it never was, or its events are damaged."""
    if request.problems:
        raise NotMeasuredError(request.problems[0])
    if request.sent_ns is None:
        raise NotMeasuredError(f"it was never sent ({request.error or 'no request_sent event'})")
    return request.sent_ns


def arrivals(request: RequestTimeline) -> tuple[Chunk, ...]:
    """Its arrivals, at least one. Raises NotMeasuredError where no token came."""
    sent_ns(request)
    if not request.arrivals:
        raise NotMeasuredError(f"no token came ({request.error})" if request.error else "no token came")
    return request.arrivals


def whole(request: RequestTimeline) -> tuple[Chunk, ...]:
    """The arrivals of a request that ended. Raises NotMeasuredError for one that failed or is cut off."""
    found = arrivals(request)
    if request.error:
        raise NotMeasuredError(f"it failed after {request.tokens} tokens ({request.error})")
    if request.end_ns is None:
        raise NotMeasuredError("no request_end event")
    return found


def several(request: RequestTimeline) -> tuple[Chunk, ...]:
    """As `whole`, where there is an interval between arrivals; raises NotMeasuredError for a single arrival too."""
    found = whole(request)
    if len(found) == 1:
        tokens = found[0].tokens
        raise NotMeasuredError(
            "one output token: there is no interval between tokens"
            if tokens == 1
            else f"all {tokens} tokens came in one chunk: nothing tells when they were made"
        )
    return found


def gaps_s(request: RequestTimeline) -> tuple[float, ...]:
    """Its inter-token latencies in s, one for each token after the first chunk.

    Raises: NotMeasuredError where a later chunk carries several tokens: the times between those are not known.
    """
    found = several(request)
    together = sum(arrival.tokens for arrival in found[1:] if arrival.tokens > 1)
    if together:
        raise NotMeasuredError(
            f"{together} of the {request.tokens} tokens came in a chunk with others: their own times are not known"
        )
    return tuple((later.t_ns - earlier.t_ns) / NS_PER_S for earlier, later in pairwise(found))


def ttft_s(request: RequestTimeline) -> float:
    """TTFT of a request, in s."""
    return (arrivals(request)[0].t_ns - sent_ns(request)) / NS_PER_S


def decode_rate(request: RequestTimeline) -> float:
    """Decode rate of a request, in tok/s."""
    found = several(request)
    return (request.tokens - found[0].tokens) * NS_PER_S / (found[-1].t_ns - found[0].t_ns)


def tpot_s(request: RequestTimeline) -> float:
    """TPOT of a request, in s."""
    found = several(request)
    return (found[-1].t_ns - found[0].t_ns) / NS_PER_S / (request.tokens - found[0].tokens)


def _itl_median_s(request: RequestTimeline) -> float:
    return float(statistics.median(gaps_s(request)))


def _silence_max_s(request: RequestTimeline) -> float:
    return max((later.t_ns - earlier.t_ns) / NS_PER_S for earlier, later in pairwise(several(request)))


def e2e_s(request: RequestTimeline) -> float:
    """End-to-end time of a request, in s."""
    return (whole(request)[-1].t_ns - sent_ns(request)) / NS_PER_S


def queue_s(request: RequestTimeline) -> float:
    """Queue time of a request, in s."""
    return (sent_ns(request) - request.scheduled_ns) / NS_PER_S


TTFT = Definition(
    "ttft.first_token/1",
    "ttft_s",
    "s",
    "TTFT",
    "Time to first token of a request to the server: from the sending of the request to the client's receipt of its "
    "first token. The client's queue and the connecting are before it. Where the first chunk carries several tokens, "
    "an upper bound, and flagged.",
    "t_first_chunk - sent",
)
DECODE_RATE = Definition(
    "decode_rate.tokens_after_first_chunk/1",
    "decode_rate_tokens_per_s",
    "tok/s",
    "Decode rate",
    "Tokens per second of one request after its first chunk. The tokens of the first chunk count in no interval.",
    "(n - n_first_chunk) / (t_last - t_first_chunk)",
)
TPOT = Definition(
    "tpot.tokens_after_first_chunk/1",
    "tpot_s",
    "s",
    "TPOT",
    "Time per output token of one request after its first chunk: the inverse of its decode rate.",
    "(t_last - t_first_chunk) / (n - n_first_chunk)",
)
_ITL_MEDIAN = Definition(
    "itl.received_median/1",
    "itl_median_s",
    "s",
    "ITL",
    "Median inter-token latency of one request, between the receipt of neighbouring tokens; only where each token "
    "after the first chunk came in a chunk of its own.",
    "median(t_(i+1) - t_i)",
)
E2E = Definition(
    "e2e.sent_to_last_token/1",
    "e2e_s",
    "s",
    "End to end",
    "From the sending of the request to the receipt of its last token.",
    "t_last - sent",
)
QUEUE = Definition(
    "queue.scheduled_to_sent/1",
    "queue_s",
    "s",
    "Queue",
    "The client's own delay: from the moment the load wanted the request sent (open loop: its arrival; closed loop: "
    "its slot became free) to the sending, connecting included. Not in TTFT.",
    "sent - scheduled",
)

REQUEST_FIGURES: tuple[tuple[Definition, Callable[[RequestTimeline], float]], ...] = (
    (TTFT, ttft_s),
    (DECODE_RATE, decode_rate),
    (TPOT, tpot_s),
    (_ITL_MEDIAN, _itl_median_s),
    (
        Definition(
            "itl.longest_wait/1",
            "itl_max_s",
            "s",
            "ITL max",
            "Longest time in which no token of the request came, after its first.",
            "max(t_(i+1) - t_i) over chunks with tokens",
        ),
        _silence_max_s,
    ),
    (E2E, e2e_s),
    (QUEUE, queue_s),
)


_TIME_NOTE = " Under emulation: server and model ran on the emulator, not board timing."


def twin(definition: Definition) -> Definition:
    """The definition that the figure has on an emulated target."""
    return replace(definition, id=emulated_id(definition.id), text=definition.text + _TIME_NOTE, emulated=True)


REQUEST_NAMES: tuple[str, ...] = tuple(native.name for native, _ in REQUEST_FIGURES)
"""The keys of a request's figures."""


def derive_request(request: RequestTimeline, *, emulated: bool) -> dict[str, Figure]:
    """Every figure of one request."""
    return {native.name: figure(native, emulated, derive, request) for native, derive in REQUEST_FIGURES}


def flags(request: RequestTimeline) -> tuple[Reason, ...]:
    """What a reader of a request's figures must know although it does not make them invalid."""
    found = request.arrivals
    flagged: list[Reason] = []
    if found and found[0].tokens > 1:
        text = f"request {request.id}: TTFT is an upper bound, {_first(request)} brought {found[0].tokens} tokens"
        flagged.append(Reason(id="ttft-upper-bound", text=text))
    together = [arrival.tokens for arrival in found[1:] if arrival.tokens > 1]
    if together:
        reads = "1 later read" if len(together) == 1 else f"{len(together)} later reads"
        text = f"request {request.id}: {reads} brought {sum(together)} tokens together"
        flagged.append(Reason(id="tokens-together", text=text))
    return tuple(flagged)


def _first(request: RequestTimeline) -> str:
    """What brought its first tokens: one chunk, or several that came in one read of the client."""
    full = [chunk for chunk in request.chunks if chunk.tokens]
    return "its first read" if sum(chunk.t_ns == full[0].t_ns for chunk in full) > 1 else "its first chunk"
