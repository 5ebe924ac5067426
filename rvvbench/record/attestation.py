"""What the plugin attests: the routes that projections took and the kernels that served them. Pure.

In a one-batch run one attestation holds the calls of the measured pass. A server's counters go on from load to load:
those of one load are the difference of the attestations after and before it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rvvbench.record.events import named
from rvvbench.record.operators import PACKED_LINEAR_OP, served
from rvvbench.record.schema import Expected
from rvvbench.record.timeline import NotMeasuredError, is_count
from rvvbench.record.way import way

Found = Iterator[tuple[str, str]]
"""Pairs of a reason's id and its text."""

Event = Mapping[str, Any]
Attestation = Event
Route = tuple[str, int, str]
"""Projection, rows (M), and the way (`Route.way`)."""


def kernel_reasons(expected: Expected, attestation: Attestation) -> Found:
    """Why the kernels of one attestation are not those that were declared."""
    library = attestation.get("library_sha256")
    if library != expected.kernels_sha256:
        why = attestation.get("library_reason")
        found = library or (f"none ({why})" if why else "none")
        yield "kernels", f"kernel library {found}, declared {expected.kernels_sha256 or 'none'}"
    ops = attestation.get("ops")
    if not isinstance(ops, dict) or not all(isinstance(op, dict) for op in ops.values()):
        yield "kernels", "the attestation has no table of ops"
        return
    yield from _calls(expected, ops, attestation.get("routing"))
    for name, op in ops.items():
        yield from _kernel_names(expected, name, op)


def routing_reasons(expected: Expected, attestation: Attestation) -> Found:
    """Where the observed table is not the predicted one, projection and M by projection and M, in both directions."""
    observed = attestation.get("routing")
    if not isinstance(observed, list) or not all(isinstance(line, dict) for line in observed):
        yield "routing", "the attestation has no routing table"
        return
    predicted = _table([route.model_dump() for route in expected.routing])
    seen = _table(observed)
    for place in dict.fromkeys([*predicted, *seen]):
        if predicted[place] != seen[place]:
            projection, m = place
            expects, observes = _counts(predicted[place]), _counts(seen[place])
            yield "routing", f"{projection} at M={m}: expected {expects}, observed {observes}"


def of_load(events: Sequence[Event], load: str) -> dict[str, Any]:
    """The attestation of what `load` did: `library_sha256`, `ops` and `routing` as in an event, with its own calls.

    Raises: NotMeasuredError where it was not attested once before and once after, outside the load, or where a counter
    cannot be read, falls, or the library changes.
    """
    before, after = (_at(events, load, moment) for moment in ("before", "after"))
    starts, ends = (named_of(events, name, load) for name in ("load_start", "load_end"))
    if not starts or not ends or not _in_order(before, starts[0]) or not _in_order(ends[-1], after):
        raise NotMeasuredError(f"load {load} does not lie between its attestations")
    told = [event for event in named(events, "attestation") if event.get("moment") in ("before", "after")]
    for earlier, later in pairwise(told[: told.index(after) + 1]):
        _refuse_fallen(earlier, later)
    if before.get("library_sha256") != after.get("library_sha256"):
        raise NotMeasuredError(f"the kernel library changed while load {load} ran")
    routes = routed(after) - routed(before)
    kernels = _kernels(after) - _kernels(before)
    calls = _op_calls(after) - _op_calls(before)
    ops: dict[str, dict[str, Any]] = {op: {"calls": count, "kernels": {}} for op, count in calls.items()}
    for (op, kernel), count in kernels.items():
        ops.setdefault(op, {"calls": 0, "kernels": {}})["kernels"][kernel] = count
    return {
        "library_sha256": after.get("library_sha256"),
        "ops": ops,
        "routing": [
            {"projection": projection, "m": m, "path": path, "calls": count}
            for (projection, m, path), count in routes.items()
        ],
    }


def named_of(events: Sequence[Event], name: str, load: str) -> list[Event]:
    """The events of that name and load, in order."""
    return [event for event in named(events, name) if event.get("load") == load]


def routed(attestation: Attestation) -> Counter[Route]:
    """Calls by route. Raises NotMeasuredError for a table that cannot be read."""
    lines = attestation.get("routing")
    calls: Counter[Route] = Counter()
    for line in lines if isinstance(lines, list) else [None]:
        fields = [line.get(key) for key in ("projection", "m", "path", "calls")] if isinstance(line, dict) else [None]
        match fields:
            case [str(projection), int(m), str(path), int(count)] if is_count(m) and m and is_count(count):
                calls[projection, m, way(path, line["bucket"] if line and "bucket" in line else None)] += count
            case _:
                raise NotMeasuredError("an attestation has no routing table that can be read")
    return calls


def _at(events: Sequence[Event], load: str, moment: str) -> Attestation:
    found = [event for event in named_of(events, "attestation", load) if event.get("moment") == moment]
    if len(found) != 1:
        raise NotMeasuredError(f"{len(found)} attestations {moment} load {load}, 1 belongs")
    return found[0]


def _in_order(earlier: Event, later: Event) -> bool:
    before, after = earlier.get("t_ns"), later.get("t_ns")
    return is_count(before) and is_count(after) and before <= after


def _refuse_fallen(earlier: Attestation, later: Attestation) -> None:
    places = f"from {earlier.get('moment')} {earlier.get('load')} to {later.get('moment')} {later.get('load')}"
    for what, read in (("route", routed), ("op", _op_calls), ("kernel", _kernels)):
        before, after = read(earlier), read(later)
        for place, count in before.items():
            if after[place] < count:
                where = place if isinstance(place, str) else " ".join(map(str, place))
                raise NotMeasuredError(f"the counter of {what} {where} falls {places}: {count} to {after[place]}")


def _ops(attestation: Attestation) -> dict[str, dict[str, Any]]:
    ops = attestation.get("ops")
    if not isinstance(ops, dict) or not all(isinstance(op, dict) for op in ops.values()):
        raise NotMeasuredError("an attestation has no table of ops")
    return ops


def _op_calls(attestation: Attestation) -> Counter[Any]:
    return Counter({name: _read(op.get("calls"), name) for name, op in _ops(attestation).items()})


def _kernels(attestation: Attestation) -> Counter[Any]:
    calls: Counter[Any] = Counter()
    for name, op in _ops(attestation).items():
        kernels = op.get("kernels")
        for kernel, count in kernels.items() if isinstance(kernels, dict) else ():
            calls[name, str(kernel)] += _read(count, name)
    return calls


def _read(count: Any, op: str) -> int:
    if not is_count(count):
        raise NotMeasuredError(f"an attestation has no number of calls of op {op}")
    return count


def _calls(expected: Expected, ops: Mapping[str, Attestation], routing: Any) -> Found:
    """Each declared op with its calls, no other, and as many calls as were routed to it, op by op.

    A plugin that counts a route as packed and then lets torch compute it shows here, and only here.
    """
    for name in dict.fromkeys([*expected.ops, *ops]):
        declared, calls = expected.ops.get(name, 0), ops.get(name, {}).get("calls", 0)
        if type(calls) is not int or (calls < 1 if declared is None else calls != declared):
            wanted = "some calls" if declared is None else f"{declared} calls"
            yield "kernels", f"op {name}: expected {wanted}, observed {calls}"
    observed = [line for line in (routing if isinstance(routing, list) else []) if isinstance(line, dict)]
    # Declared routes count nothing, and have calls of their operators compared where no such route was observed.
    lines = [(route.projection, route.path, 0) for route in expected.routing]
    lines += [(str(line.get("projection")), str(line.get("path")), _count(line)) for line in observed]
    for one in served(lines, int8_cache=expected.server_args.get("kv_cache_dtype") == "int8"):
        attested = sum(_count(ops[name]) for name in one.ops if name in ops)
        if one.calls != attested:
            of = "" if one.ops == (PACKED_LINEAR_OP,) else f" of {' and '.join(one.ops)}"
            yield "kernels", f"{one.calls} calls were routed {one.what}, the kernels attest {attested}{of}"


def _kernel_names(expected: Expected, name: str, op: Attestation) -> Found:
    """The kernels behind an op account for all its calls, and are of the kind that the target must have."""
    kernels = op.get("kernels")
    if not isinstance(kernels, dict):
        yield "kernels", f"op {name}: the attestation does not name its kernels"
        return
    if sum(calls for calls in kernels.values() if type(calls) is int) != _count(op):
        yield "kernels", f"op {name}: {op.get('calls')} calls, but its kernels are {kernels}"
    suffix = expected.kernel_suffix
    for kernel in kernels:
        if suffix is None or not str(kernel).endswith(suffix):
            yield "kernels", f"op {name} ran {kernel}, declared {f'are kernels *{suffix}' if suffix else 'is none'}"


def _count(line: Attestation) -> int:
    calls = line.get("calls")
    return calls if type(calls) is int else 0


def _table(lines: Sequence[Attestation]) -> defaultdict[tuple[str, str], Counter[str]]:
    """Calls by way, by (projection, M) as texts: what was observed may hold anything."""
    table: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for line in lines:
        place = str(line.get("projection")), str(line.get("m"))
        table[place][way(str(line.get("path")), line.get("bucket"))] += _count(line)
    return table


def _counts(calls: Mapping[str, int]) -> str:
    return ", ".join(f"{name} x {count}" for name, count in sorted(calls.items())) or "nothing"
