"""The loads and requests of a serving run, read from its events; what they do not hold is said, never filled in.

Times are CLOCK_MONOTONIC nanoseconds of the client. A chunk is one message of the stream as the client received it;
messages of one read have one time, and together are one arrival.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

from rvvbench.record.events import named
from rvvbench.record.timeline import Events, is_count, is_number


@dataclass(frozen=True)
class Chunk:
    """`tokens` new ones came at `t_ns`, none for an empty chunk. `has_text` is None where texts are not sent."""

    t_ns: int
    tokens: int
    has_text: bool | None = None


@dataclass(frozen=True)
class RequestTimeline:
    """One request as the client saw it. `input_tokens` were sent (None: words were), `output_len` asked for;
    `prompt_tokens`, `cached_tokens` and `completion_tokens` are the server's counts (None: it gave none).

    `error` is the kind and text of its failure. `problems` are what in its events is damaged: no figure stands then.
    """

    id: str
    load: str
    scheduled_ns: int
    input_tokens: int | None
    output_len: int
    input_sha256: str | None = None
    sent_ns: int | None = None
    chunks: tuple[Chunk, ...] = ()
    end_ns: int | None = None
    finish_reason: str | None = None
    error: str | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    problems: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Output tokens that were received."""
        return sum(chunk.tokens for chunk in self.chunks)

    @cached_property
    def arrivals(self) -> tuple[Chunk, ...]:
        """The moments at which tokens came: empty chunks left out, chunks of one read taken together."""
        full = (chunk for chunk in self.chunks if chunk.tokens)
        together = ((t_ns, list(chunks)) for t_ns, chunks in groupby(full, key=lambda chunk: chunk.t_ns))
        return tuple(Chunk(t_ns, sum(chunk.tokens for chunk in chunks)) for t_ns, chunks in together)


@dataclass(frozen=True)
class Load:
    """One concurrency (`mode` "closed") or one request rate ("open"). `complete`: the client sent all it should."""

    name: str
    mode: str
    measured: bool
    requests: int
    concurrency: int | None
    rate_per_s: float | None
    complete: bool


def loads(events: Events) -> tuple[Load, ...]:
    """Every load whose `load_start` can be read, in order; one that was started twice is not complete."""
    ends = [end for end in named(events, "load_end") if isinstance(end.get("load"), str)]
    ended = {end["load"]: end.get("complete") is True for end in ends}
    starts = [start for start in named(events, "load_start") if isinstance(start.get("load"), str)]
    names = [start["load"] for start in starts]
    found: dict[str, Load] = {}
    for start in starts:
        name, requests, concurrency, rate = (
            start.get(key) for key in ("load", "requests", "concurrency", "rate_per_s")
        )
        found[str(name)] = Load(
            name=str(name),
            mode=str(start.get("mode")),
            measured=start.get("measured") is True,
            requests=requests if is_count(requests) else 0,
            concurrency=concurrency if is_count(concurrency) else None,
            rate_per_s=float(rate) if is_number(rate) else None,
            complete=ended.get(name, False) and names.count(str(name)) == 1,
        )
    return tuple(found.values())


def requests(events: Events, load: str | None = None) -> tuple[RequestTimeline, ...]:
    """The requests of `load` (of every load for None) in the order in which they were started."""
    by_id: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for event in events:
        name, id_ = event.get("event"), event.get("request")
        if name in _REQUEST_EVENTS and isinstance(id_, str):
            by_id.setdefault(id_, {kind: [] for kind in _REQUEST_EVENTS})[str(name)].append(event)
    started = ((id_, kinds) for id_, kinds in by_id.items() if kinds["request_start"])
    return tuple(_timeline(id_, kinds) for id_, kinds in started if load is None or _load_of(kinds) == load)


_REQUEST_EVENTS = ("request_start", "request_sent", "chunk", "request_end", "request_error")


def _load_of(kinds: Mapping[str, list[Mapping[str, Any]]]) -> str:
    return str(kinds["request_start"][0].get("load"))


def _timeline(id_: str, kinds: Mapping[str, list[Mapping[str, Any]]]) -> RequestTimeline:
    problems = [f"{len(events)} {name} events" for name, events in kinds.items() if name != "chunk" and len(events) > 1]
    if kinds["request_end"] and kinds["request_error"]:
        problems.append("both a request_end and a request_error event")
    start = kinds["request_start"][0]
    sent, end, error = (next(iter(kinds[name]), None) for name in ("request_sent", "request_end", "request_error"))

    def count(event: Mapping[str, Any], field: str) -> int:
        value = event.get(field)
        if is_count(value):
            return value
        problems.append(f"its {event.get('event')} event has no {field}")
        return 0

    scheduled_ns = count(start, "scheduled_ns")
    sent_ns = None if sent is None else count(sent, "t_ns")
    end_ns = None if end is None else count(end, "t_ns")
    chunks = tuple(_chunk(event, count(event, "t_ns"), problems) for event in kinds["chunk"])
    times = [scheduled_ns, *(t for t in (sent_ns,) if t is not None), *(chunk.t_ns for chunk in chunks)]
    times += [] if end_ns is None else [end_ns]
    if any(later < earlier for earlier, later in pairwise(times)):
        problems.append("its clock runs backwards")
    if chunks and sent_ns is None:
        problems.append("chunks, but no request_sent event")
    elif chunks and chunks[0].t_ns == sent_ns:
        problems.append("its first chunk came when it was sent")
    came = sum(chunk.tokens for chunk in chunks)
    if end is not None and (type(end.get("tokens")) is not int or end["tokens"] != came):
        problems.append(f"its request_end event says {end.get('tokens')} tokens, {came} came")
    reason = end.get("finish_reason") if end else None
    digest = start.get("input_sha256")
    return RequestTimeline(
        id=id_,
        load=_load_of(kinds),
        scheduled_ns=scheduled_ns,
        input_tokens=None if is_count(start.get("input_chars")) else count(start, "input_tokens"),
        output_len=count(start, "output_len"),
        input_sha256=digest if isinstance(digest, str) else None,
        sent_ns=sent_ns,
        chunks=chunks,
        end_ns=end_ns,
        finish_reason=str(reason.get("type")) if isinstance(reason, dict) else None,
        error=f"{error.get('kind')}: {error.get('message')}" if error else None,
        prompt_tokens=_one_count(kinds["chunk"], "prompt_tokens", problems),
        cached_tokens=_one_count(kinds["chunk"], "cached_tokens", problems),
        completion_tokens=_last_count(kinds["chunk"], "total_tokens", problems),
        problems=tuple(problems),
    )


def _chunk(event: Mapping[str, Any], t_ns: int, problems: list[str]) -> Chunk:
    ids, has_text = event.get("token_ids"), event.get("has_text")
    if not isinstance(ids, list) or not all(type(token) is int for token in ids):
        problems.append("a chunk's token_ids are no list of whole numbers")
        ids = []
    return Chunk(t_ns, len(ids), has_text if isinstance(has_text, bool) else None)


def _one_count(chunks: list[Mapping[str, Any]], field: str, problems: list[str]) -> int | None:
    """What the server said in every chunk; None where one lacks it, or says what is no count."""
    values = _counts(chunks, field, problems)
    if values is None or len(values) < len(chunks):
        return None
    different = sorted(set(values))
    if len(different) > 1:
        problems.append(f"the server gave several {field}: {', '.join(map(str, different))}")
    return different[-1] if different else None


def _last_count(chunks: list[Mapping[str, Any]], field: str, problems: list[str]) -> int | None:
    values = _counts(chunks, field, problems)
    return values[-1] if values else None


def _counts(chunks: list[Mapping[str, Any]], field: str, problems: list[str]) -> list[int] | None:
    """None where a value is no count (1.0 is none): then nothing is known, whatever the other chunks say."""
    given = [chunk[field] for chunk in chunks if chunk.get(field) is not None]
    counts = [value for value in given if is_count(value)]
    if len(counts) == len(given):
        return counts
    wrong = next(value for value in given if not is_count(value))
    problems.append(f"the server gave {field} {str(wrong)[:40]}, which is no count")
    return None
