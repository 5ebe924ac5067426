"""The routing table and the operator calls that a row expects, against what its manifest says of model and variant.

Here for manifests that describe operators (`plain_model.describes_operators`); the older ones say less, and
`declared` and `declared_loads` check what they do say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rvvbench.record.finding import Finding
from rvvbench.record.operators import NORM, norm_calls, served
from rvvbench.record.plain_model import PlainModel, Variant, calls_of_pass
from rvvbench.record.schema import Expected

Place = tuple[str, int, str]
"""Projection or operator, rows, way (`Route.way`)."""


def routes_declared(where: str, expected: Expected, model: PlainModel, variant: Variant) -> Iterator[Finding]:
    """Every line of the table, in both directions: of one batch with its calls, of a load with its modules, of a task
    with those too, at the fewest rows that a path may be taken with.
    """
    one_batch = expected.load is None
    declared: Mapping[Place, int | None] = (
        calls_of_one_batch(expected, model, variant) if one_batch else _modules_of_load(expected, model, variant)
    )
    if expected.task is not None:
        fewest: dict[tuple[str, str], int] = {}
        for name, m, path in declared:
            fewest[name, path] = min(m, fewest.get((name, path), m))
        declared = {place: modules for place, modules in declared.items() if place[1] == fewest[place[0], place[2]]}
    stored: dict[Place, tuple[int | None, int | None]] = {}
    for route in expected.routing:
        place = (route.projection, route.m, route.way)
        if place in stored:
            yield Finding("expected", where, f"{_said(place)} stands twice")
        stored[place] = (route.calls, route.modules)
    for place in dict.fromkeys([*declared, *stored]):
        if place not in declared:
            yield Finding("expected", where, f"{_said(place)} is there, shape, model and variant have no such route")
        elif place not in stored:
            yield Finding("expected", where, f"{_said(place)} is not there, shape, model and variant have it")
        else:
            wanted = (declared[place], None) if one_batch else (None, declared[place])
            if stored[place] != wanted:
                text = f"{_said(place)} has calls and modules {stored[place]}, shape, model and variant say {wanted}"
                yield Finding("expected", where, text)


def calls_of_one_batch(expected: Expected, model: PlainModel, variant: Variant) -> Counter[Place]:
    """Calls of a prefill of the whole batch and of every decode step. Raises as `calls_of_pass`."""
    batch = expected.batch_size
    calls = calls_of_pass(model, variant, tokens=batch * expected.input_len, sequences=batch, decodes=False)
    for place, count in calls_of_pass(model, variant, tokens=batch, sequences=batch, decodes=True).items():
        calls[place] += count * (expected.output_len - 1)
    return +calls


def ops_declared(expected: Expected, model: PlainModel, variant: Variant) -> dict[str, Any]:
    """What `expected.ops` must be: calls for one batch, for a load null. Raises as `calls_of_pass`."""
    if expected.load is None:
        calls = calls_of_one_batch(expected, model, variant)
        passes = expected.output_len
    else:
        calls = Counter(dict.fromkeys(_modules_of_load(expected, model, variant), 1))
        passes = 1
    lines = [(name, path, count) for (name, _, path), count in calls.items()]
    int8_cache = variant.get("kv_cache_dtype") == "int8"
    ops = {one.ops[0]: one.calls for one in served(lines, int8_cache=int8_cache) if len(one.ops) == 1}
    if any(name == NORM and path == "kernels" for name, path, _ in lines):
        ops |= norm_calls(model.layers, passes, qk_norms=bool(model.qk_norm_heads))
    return ops if expected.load is None else dict.fromkeys(ops)


def _modules_of_load(expected: Expected, model: PlainModel, variant: Variant) -> dict[Place, int | None]:
    """Every route that the requests in flight can take, and how many modules take it in a pass."""
    assert expected.load is not None
    places: dict[Place, int | None] = {}
    for together in range(1, expected.load.in_flight + 1):
        prefill = calls_of_pass(model, variant, tokens=together * expected.input_len, sequences=together, decodes=False)
        step = calls_of_pass(model, variant, tokens=together, sequences=together, decodes=True)
        for calls in (prefill, step) if expected.output_len > 1 else (prefill,):
            places |= {place: None if place[0] == NORM else count for place, count in calls.items()}
    return places


def _said(place: Place) -> str:
    name, m, path = place
    return f"{name} at M={m} by {path}"
