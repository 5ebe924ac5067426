"""What SGLang's own benchmark found on the same server (`cross_check` events): whether it can be believed, and what a
difference to ours may mean. Pure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rvvbench.record.events import named
from rvvbench.record.server_checks import CROSS_CHECK
from rvvbench.record.timeline import is_count, is_number

EXPLAINED_PERCENT = 3.0
"""A larger difference than this is not one of definitions alone, whatever they are."""

COMPARABLE_REQUESTS = 30
"""Below this, on either side, a median says too little to be set beside another."""

_AGREES = 1e-6
"""Relative: the tool's median of its own list, up to the rounding of its arithmetic."""

_DIFFERS = {
    "ttft": "its clock starts before it connects, and stops at the first visible text",
    "tpot": "its latency runs to the end of the answer",
    "itl": "between chunks with visible text, shared evenly among their tokens; taken after parsing",
    "e2e": "from before it connects to the end of the answer",
}
_LISTS = ("input_lens", "output_lens", "ttfts", "itls", "errors")


def note(metric: str, difference_percent: float | None, ours: int, tools: Any) -> str:
    """What differs by definition; before it, where that does not explain the difference, or `ours` and the `tools`
    requests are too few to judge.
    """
    said = []
    if difference_percent is not None:
        if ours < COMPARABLE_REQUESTS or not is_count(tools) or tools < COMPARABLE_REQUESTS:
            said.append(f"too few to judge (n = {ours} and {tools}, {COMPARABLE_REQUESTS} each needed)")
        if abs(difference_percent) > EXPLAINED_PERCENT:
            said.append("not explained by definition alone")
    return "; ".join([*said, _DIFFERS[metric]])


def failures(events: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Why a cross-check of this server failed, or left what the tool cannot have measured."""
    for error in named(events, "error"):
        if error.get("phase") == CROSS_CHECK:
            yield str(error.get("message"))
    for event in named(events, "cross_check"):
        reason = why_broken(event)
        if reason is not None:
            yield reason


def why_broken(event: Mapping[str, Any]) -> str | None:
    """Why the result is not one of as many requests as were asked for, each answered whole, with these medians; None
    where it is.
    """
    raw = event.get("raw")
    if not isinstance(raw, dict):
        return "the cross-check left no result"
    return next((reason for check in (_incomplete, _unlike_its_lists) for reason in check(event, raw)), None)


def option(event: Mapping[str, Any], name: str) -> str | None:
    """What the tool was given for that option."""
    argv = event.get("argv")
    if not isinstance(argv, list) or name not in argv[:-1]:
        return None
    return str(argv[argv.index(name) + 1])


def _incomplete(event: Mapping[str, Any], raw: Mapping[str, Any]) -> Iterator[str]:
    asked, told = event.get("requests"), option(event, "--num-prompts")
    if told is not None and told != str(asked):
        yield f"it was asked for {told} requests, and {asked} are recorded"
    errors = raw.get("errors")
    failed = [error for error in errors if error] if isinstance(errors, list) else []
    if failed:
        yield f"{len(failed)} of its {asked} requests failed: {str(failed[0])[:200]}"
    if not is_count(raw.get("completed")) or raw["completed"] != asked:
        yield f"it completed {raw.get('completed')} of {asked} requests"
    for name in _LISTS:
        if name in raw and (not isinstance(raw[name], list) or len(raw[name]) != asked):
            yield f"its {name} are not of {asked} requests"
    length, lengths = option(event, "--random-output-len"), raw.get("output_lens")
    if length is not None and isinstance(lengths, list) and {str(one) for one in lengths} != {length}:
        yield f"its answers did not all have {length} tokens"


def _unlike_its_lists(_: Mapping[str, Any], raw: Mapping[str, Any]) -> Iterator[str]:
    """It keeps each request's TTFT and ITLs (in s) beside the medians (in ms) that it took of them."""
    itls = raw.get("itls")
    flat = [gap for gaps in itls if isinstance(gaps, list) for gap in gaps] if isinstance(itls, list) else None
    for metric, times in (("ttft", raw.get("ttfts")), ("itl", flat)):
        name = f"median_{metric}_ms"
        if not isinstance(times, list) or not times or not is_number(raw.get(name)):
            continue
        if not all(is_number(time) for time in times):
            yield f"its {metric}s are no times"
            continue
        median_ms = 1000 * statistics.median(times)
        if not math.isclose(median_ms, raw[name], rel_tol=_AGREES):
            yield f"its {name} is {raw[name]:g}, of its own {metric}s it is {median_ms:g}"
