"""Is what a load declared what the server did? Pure: what was asked for, against the requests' timelines.

As in `validity`: what is not proven is not valid. Every reason of a request names it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rvvbench.record.attestation import Found
from rvvbench.record.request_timeline import Load, RequestTimeline
from rvvbench.record.schema import Reason
from rvvbench.record.serving import in_flight_peak
from rvvbench.record.timeline import NotMeasuredError


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
