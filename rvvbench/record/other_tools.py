"""One timeline under the definitions of other tools, so that a table of theirs can be matched. Never our own figures.

Each tool's TTFT, TPOT and ITL as its client takes them from the same stream. Read in SGLang's `benchmark/serving.py`
(0.5.15), vLLM's `benchmarks/lib/endpoint_request_func.py`, guidellm's `schemas/request_stats.py` and MLPerf's LoadGen
(FirstTokenComplete, QuerySampleComplete). `n` is the server's token count where it gives one, else the ids received.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rvvbench.record.metrics import Definition, figure
from rvvbench.record.request_figures import arrivals, sent_ns, several, whole
from rvvbench.record.request_timeline import Chunk, RequestTimeline
from rvvbench.record.schema import Figure
from rvvbench.record.timeline import NS_PER_S, NotMeasuredError

TOOLS = ("sglang", "vllm", "guidellm", "mlperf")


@dataclass(frozen=True)
class ToolFigures:
    """One request under one tool. `itl_samples_s` are what the tool pools over requests for its ITL statistics;
    `itl` is their mean, and null with a reason where there are none.
    """

    ttft: Figure
    tpot: Figure
    itl: Figure
    itl_samples_s: tuple[float, ...]


def definitions(request: RequestTimeline, *, emulated: bool = False) -> dict[str, ToolFigures]:
    """The request's TTFT, TPOT and ITL by tool."""
    table: dict[str, ToolFigures] = {}
    for tool in TOOLS:
        ttft, tpot, samples = _RULES[tool]
        itl = _figure("itl", tool, emulated, _mean_of(samples), request)
        table[tool] = ToolFigures(
            ttft=_figure("ttft", tool, emulated, ttft, request),
            tpot=_figure("tpot", tool, emulated, tpot, request),
            itl=itl,
            itl_samples_s=() if itl.value is None else samples(request),
        )
    return table


def medians_s(requests: Sequence[RequestTimeline]) -> dict[str, dict[str, float | None]]:
    """By tool, the medians of TTFT and TPOT over the requests and of ITL over the pooled samples.

    None where any request has none: those that have it are no fair choice.
    """
    tables = [definitions(request) for request in requests]
    medians: dict[str, dict[str, float | None]] = {}
    for tool in TOOLS:
        own = [table[tool] for table in tables]
        gaps = None if any(one.itl.value is None for one in own) else [s for one in own for s in one.itl_samples_s]
        medians[tool] = {
            "ttft": _median([one.ttft.value for one in own]),
            "tpot": _median([one.tpot.value for one in own]),
            "itl": _median(gaps or []),
        }
    return medians


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(statistics.median(known)) if known and len(known) == len(values) else None


# SGLang: only chunks with visible text are looked at; without texts (token ids in and out) every chunk with tokens is
# taken to be visible. Its latency runs to the line [DONE].


def _visible(request: RequestTimeline) -> list[Chunk]:
    whole(request)
    found = [chunk for chunk in request.chunks if (chunk.tokens > 0 if chunk.has_text is None else chunk.has_text)]
    if not found:
        raise NotMeasuredError("no chunk has visible text")
    return found


def _sglang_ttft_s(request: RequestTimeline) -> float:
    return (_visible(request)[0].t_ns - sent_ns(request)) / NS_PER_S


def _sglang_tpot_s(request: RequestTimeline) -> float:
    return (_to_the_end_s(request) - _sglang_ttft_s(request)) / _intervals(request)


def _sglang_itl_s(request: RequestTimeline) -> tuple[float, ...]:
    # What chunks without visible text carry is in the server's count, so in the next visible chunk's share.
    first, gaps, pending, last_ns = True, [], 0, 0
    visible = {id(chunk) for chunk in _visible(request)}
    for chunk in request.chunks:
        pending += chunk.tokens
        if id(chunk) not in visible or (not first and not pending):
            continue
        if not first:
            gaps += [(chunk.t_ns - last_ns) / NS_PER_S / pending] * pending
        first, pending, last_ns = False, 0, chunk.t_ns
    return tuple(gaps)


# vLLM: every chunk counts, an empty one too; each gap is one ITL, however many tokens the chunk carries.


def _vllm_ttft_s(request: RequestTimeline) -> float:
    return (_chunks(request)[0].t_ns - sent_ns(request)) / NS_PER_S


def _vllm_tpot_s(request: RequestTimeline) -> float:
    found = _chunks(request)
    return (found[-1].t_ns - found[0].t_ns) / NS_PER_S / _intervals(request)


def _vllm_itl_s(request: RequestTimeline) -> tuple[float, ...]:
    found = _chunks(request)
    return tuple((later.t_ns - earlier.t_ns) / NS_PER_S for earlier, later in pairwise(found))


def _chunks(request: RequestTimeline) -> tuple[Chunk, ...]:
    whole(request)
    return request.chunks


# guidellm: TPOT divides by all tokens, the first included; ITL is one mean a request.


def _first_token_s(request: RequestTimeline) -> float:
    return (arrivals(request)[0].t_ns - sent_ns(request)) / NS_PER_S


def _guidellm_tpot_s(request: RequestTimeline) -> float:
    return (whole(request)[-1].t_ns - sent_ns(request)) / NS_PER_S / _count(request)


def _guidellm_itl_s(request: RequestTimeline) -> tuple[float, ...]:
    found = several(request)
    return ((found[-1].t_ns - found[0].t_ns) / NS_PER_S / _intervals(request),)


# MLPerf: from the query's issue to its completion; no ITL.


def _mlperf_tpot_s(request: RequestTimeline) -> float:
    return (_to_the_end_s(request) - _first_token_s(request)) / _intervals(request)


def _mlperf_itl_s(request: RequestTimeline) -> tuple[float, ...]:
    raise NotMeasuredError("MLPerf defines no inter-token latency")


def _to_the_end_s(request: RequestTimeline) -> float:
    whole(request)
    assert request.end_ns is not None
    return (request.end_ns - sent_ns(request)) / NS_PER_S


def _count(request: RequestTimeline) -> int:
    return request.completion_tokens or request.tokens


def _intervals(request: RequestTimeline) -> int:
    if _count(request) < 2:
        raise NotMeasuredError("one output token: there is no interval between tokens")
    return _count(request) - 1


_Rule = Callable[[RequestTimeline], float]
_Samples = Callable[[RequestTimeline], tuple[float, ...]]

_RULES: Mapping[str, tuple[_Rule, _Rule, _Samples]] = {
    "sglang": (_sglang_ttft_s, _sglang_tpot_s, _sglang_itl_s),
    "vllm": (_vllm_ttft_s, _vllm_tpot_s, _vllm_itl_s),
    "guidellm": (_first_token_s, _guidellm_tpot_s, _guidellm_itl_s),
    "mlperf": (_first_token_s, _mlperf_tpot_s, _mlperf_itl_s),
}

_TEXTS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("ttft", "sglang"): ("First chunk with visible text.", "t_first_visible - sent"),
    ("ttft", "vllm"): ("First chunk of the answer, even an empty one.", "t_first_chunk - sent"),
    ("ttft", "guidellm"): ("First token.", "t_first_token - sent"),
    ("ttft", "mlperf"): ("First token complete.", "t_first_token - sent"),
    ("tpot", "sglang"): ("Latency is to the end of the answer.", "(latency - ttft) / (n - 1)"),
    ("tpot", "vllm"): ("Latency is to the last chunk, even an empty one.", "(latency - ttft) / (n - 1)"),
    ("tpot", "guidellm"): ("Latency is to the last token; the first token is included.", "latency / n"),
    ("tpot", "mlperf"): ("Latency is to the end of the answer.", "(latency - ttft) / (n - 1)"),
    ("itl", "sglang"): ("The gap before a chunk, split evenly over its tokens.", "gap / tokens, for each token"),
    ("itl", "vllm"): ("The gap before a chunk, however many tokens it carries.", "gap, for each chunk"),
    ("itl", "guidellm"): ("One mean for each request.", "(t_last - t_first) / (n - 1)"),
    ("itl", "mlperf"): ("Not defined.", "-"),
}


def _definition(metric: str, tool: str) -> Definition:
    text, formula = _TEXTS[metric, tool]
    title = f"{metric.upper()} as {tool}"
    return Definition(f"{metric}.as_{tool}/1", f"{metric}_as_{tool}_s", "s", title, text, formula)


OTHER_DEFINITIONS: Mapping[str, Definition] = {
    definition.id: definition for definition in (_definition(metric, tool) for metric, tool in _TEXTS)
}
"""What the ids say, by id; an emulated figure has the emulated twin of the id."""


def _mean_of(samples: _Samples) -> _Rule:
    def mean(request: RequestTimeline) -> float:
        found = samples(request)
        if not found:
            raise NotMeasuredError("the tool takes no inter-token latency of this request")
        return sum(found) / len(found)

    return mean


def _figure(metric: str, tool: str, emulated: bool, rule: _Rule, request: RequestTimeline) -> Figure:
    return figure(OTHER_DEFINITIONS[f"{metric}.as_{tool}/1"], emulated, rule, request)
