"""Is what a task's row expects what its server did? Pure, as `validity`, of which these are the checks for a task.

Prompts and answers are of any length, so that what the server must have computed follows from its own counts of them:
of each request the prompt's tokens that did not come from the cache, and each answer's token but the last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rvvbench.record.attestation import Found, kernel_reasons, named_of, of_load, routed
from rvvbench.record.request_timeline import RequestTimeline, loads, requests
from rvvbench.record.schema import Expected, ExpectedTask, Process
from rvvbench.record.server_checks import server_phases
from rvvbench.record.server_passes import Needed, computed_reasons
from rvvbench.record.serving import in_flight_peak
from rvvbench.record.task_answers import Answer, answers
from rvvbench.record.timeline import NotMeasuredError

ENDINGS = ("stop", "length")


def _asked(expected: Expected, process: Process) -> Found:
    task, declared = expected.task, expected.load
    assert task is not None and declared is not None
    found = next((load for load in loads(process.events) if load.name == declared.name), None)
    if found is None:
        yield "load-missing", f"there is no load {declared.name} in the events"
        return
    kind = (found.measured, found.mode, found.concurrency, found.requests)
    wanted = (True, declared.mode, declared.concurrency, declared.requests)
    if kind != wanted:
        yield "load", f"load {declared.name} was {kind} (measured, mode, concurrency, requests), declared {wanted}"
    if not found.complete:
        yield "load-incomplete", f"load {declared.name} did not come to its end"
    asked = requests(process.events, declared.name)
    yield from _at_once(declared.name, declared.in_flight, asked)
    yield from _questions(task, asked)
    for one in asked:
        for id_, text in _of_request(expected, one):
            yield id_, f"question {one.id}: {text}"


def _at_once(load: str, wanted: int, asked: Sequence[RequestTimeline]) -> Found:
    try:
        peak = in_flight_peak(asked)
    except NotMeasuredError as error:
        yield "concurrency-unproven", f"load {load}: {error}"
        return
    if peak != wanted:
        yield "concurrency", f"load {load}: {peak:.0f} questions were asked at once at most, not {wanted}"


def _questions(task: ExpectedTask, asked: Sequence[RequestTimeline]) -> Found:
    """Every question was asked once, in its order and in its words."""
    declared = [question.id for question in task.questions]
    seen = [one.id for one in asked]
    if seen != declared:
        missing = sorted(set(declared) - set(seen))[:3]
        more = f", not {', '.join(missing)}" if missing else ", but others or in another order"
        yield "questions", f"{len(seen)} questions were asked, {len(declared)} are declared{more}"
    prompts = {question.id: question.prompt_sha256 for question in task.questions}
    for one in asked:
        if one.id in prompts and one.input_sha256 != prompts[one.id]:
            said = f"sha256 {one.input_sha256}, declared {prompts[one.id]}"
            yield "prompt", f"question {one.id} was asked with a prompt of {said}"


def _of_request(expected: Expected, one: RequestTimeline) -> Found:
    for problem in one.problems:
        yield "events-damaged", problem
    if one.error:
        yield "request-error", f"failed after {one.tokens} tokens: {one.error}"
    elif one.end_ns is None:
        yield "request-not-ended", f"its answer did not end; {one.tokens} tokens came"
    elif one.finish_reason not in ENDINGS:
        yield "finish-reason", f"finished by {one.finish_reason or 'nothing'}, not by one of {', '.join(ENDINGS)}"
    if one.tokens > expected.output_len or (one.finish_reason == "length" and one.tokens < expected.output_len):
        yield "output-length", f"{one.tokens} tokens of at most {expected.output_len}, ended by {one.finish_reason}"
    if one.output_len != expected.output_len:
        yield "output-length", f"{one.output_len} tokens were asked for, declared {expected.output_len}"
    if one.prompt_tokens is None or one.cached_tokens is None or one.completion_tokens is None:
        yield "token-count-unproven", "the server did not count its prompt, what of it was cached, and its tokens"
        return
    if one.prompt_tokens > expected.input_len:
        yield "prompt-length", f"its prompt has {one.prompt_tokens} tokens, at most {expected.input_len} are declared"
    if one.completion_tokens != one.tokens:
        yield "token-count", f"{one.tokens} token ids came, the server counted {one.completion_tokens}"
    if one.cached_tokens and expected.server_args.get("disable_radix_cache") is not False:
        yield "cached-tokens", f"{one.cached_tokens} prompt tokens came from the server's cache, which is declared off"


def _answered(expected: Expected, process: Process) -> Found:
    """The answers can be read, and are those of the requests that were asked."""
    assert expected.task is not None and expected.load is not None
    if not named_of(process.events, "load_start", expected.load.name):
        return  # of a load that never was `_asked` tells
    try:
        found = answers(process.events, expected.task)
    except NotMeasuredError as error:
        yield "answers", str(error)
        return
    asked = {one.id: one for one in requests(process.events, expected.load.name)}
    for answer in found:
        one = asked.get(answer.question.id)
        if answer.prompt_sha256 != answer.question.prompt_sha256:
            yield "answers", f"question {answer.question.id}: its answer is to another prompt"
        counts = (answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens, answer.finish_reason)
        if one is None:
            yield "answers", f"question {answer.question.id} has an answer and was not asked"
        elif counts != (one.prompt_tokens, one.cached_tokens, one.completion_tokens, one.finish_reason):
            yield "answers", f"question {answer.question.id}: its answer does not count as its chunks do"


def _attested(expected: Expected, process: Process) -> Found:
    assert expected.load is not None and expected.task is not None
    try:
        attestation = of_load(process.events, expected.load.name)
    except NotMeasuredError as error:
        yield "attestation", str(error)
        return
    yield from kernel_reasons(expected, attestation)
    try:
        found = answers(process.events, expected.task)
        yield from _passes(expected, attestation, found)
    except NotMeasuredError as error:
        yield "routing", str(error)


def _passes(expected: Expected, attestation: Mapping[str, Any], found: Sequence[Answer]) -> Found:
    """Every projection and operator took a declared path, and computed the rows that the answers need."""
    allowed: defaultdict[str, set[str]] = defaultdict(set)
    for route in expected.routing:
        allowed[route.projection].add(route.path)
    for (projection, m, path), calls in routed(attestation).items():
        if calls and path not in allowed[projection]:
            wanted = " or ".join(sorted(allowed[projection])) or "no such projection"
            yield "routing", f"{projection} at M={m}: expected {wanted}, observed {path} x {calls}"
    needed = Needed(
        extended=sum(one.prompt_tokens - one.cached_tokens for one in found),
        decoded=sum(one.completion_tokens - 1 for one in found),
        sampled=sum(one.completion_tokens for one in found),
        by="the answers",
    )
    yield from computed_reasons(expected, attestation, needed)


TASK_CHECKS = (server_phases, _asked, _answered, _attested)
"""What a task's row must show beyond what every process must, given what is expected."""
