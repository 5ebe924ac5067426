"""The forward passes of a server while one load ran, as the rows (M) of its projections and operators tell them. Pure.

A prefill brings the tokens of its prompts that are in no cache to every layer's projections, and one row of each prompt
to lm_head; a decode step brings one row of each request that is decoding. Whichever arrives when, the rows are
conserved; and what the projections of a layer show of the passes, its attention, norms, activations and rotary
embeddings must show too.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rvvbench.record.attestation import Found, routed
from rvvbench.record.operators import ADDING_NORM_OP, ATTENTION, NORM, OPERATORS, PLAIN_NORM_OP, norm_calls
from rvvbench.record.plain_manifest import HEAD
from rvvbench.record.schema import Expected, ExpectedLoad
from rvvbench.record.timeline import NotMeasuredError

ByRows = Mapping[int, int]
"""Calls by rows (M)."""

LEAST_AT_FULL_PERCENT = 50.0
"""Of the decoded tokens: with fewer than this in full batches, a load has not shown the concurrency of its name."""


@dataclass(frozen=True)
class Needed:
    """What the passes of a load must have computed: tokens of prompts, `extended`; tokens `decoded`, which are those of
    the answers but their first; tokens `sampled` in all. `by` says what needs them.
    """

    extended: int
    decoded: int
    sampled: int
    by: str


def pass_reasons(expected: Expected, attestation: Mapping[str, Any]) -> Found:
    """Why the attested passes are not those of the declared load; `attestation` is the load's own."""
    load = _load(expected)
    try:
        routes = routed(attestation)
    except NotMeasuredError as error:
        yield "routing", str(error)
        return
    allowed = {(route.projection, route.m, route.way) for route in expected.routing}
    for (projection, m, path), calls in routes.items():
        if calls and (projection, m, path) not in allowed:
            paths = sorted({route.way for route in expected.routing if (route.projection, route.m) == (projection, m)})
            wanted = " or ".join(paths) or "no such rows"
            yield "routing", f"{projection} at M={m}: expected {wanted}, observed {path} x {calls}"
    requests, tokens = load.requests, expected.output_len
    needed = Needed(
        requests * expected.input_len, requests * (tokens - 1), requests * tokens, by=f"{requests} requests"
    )
    yield from computed_reasons(expected, attestation, needed)
    if load.mode == "closed" and load.in_flight > 1 and expected.output_len > 1:
        try:
            share = decoded_at_full_percent(expected, attestation)
        except NotMeasuredError as error:
            yield "concurrency-unproven", f"load {load.name}: {error}"
            return
        if share < LEAST_AT_FULL_PERCENT:
            text = f"{share:.0f} % of its tokens were decoded {load.in_flight} at once"
            yield "concurrency-unproven", f"load {load.name}: {text}, {LEAST_AT_FULL_PERCENT:.0f} % must be"


def computed_reasons(expected: Expected, attestation: Mapping[str, Any], needed: Needed) -> Found:
    """Where the attested passes did not compute what is `needed`, or a pass was not one of all the model.

    Raises: NotMeasuredError for a routing table that cannot be read.
    """
    load, table = _load(expected), _by_projection(expected, attestation)
    yield from _apart_alike(expected, routed(attestation))
    yield from _conserved(expected, load, table, needed)
    yield from _norms_apart(load, table, attestation)


def decoded_at_full_percent(expected: Expected, attestation: Mapping[str, Any]) -> float:
    """Of all decoded tokens (those after the first of each request), how many came from passes with as many rows as
    requests can be in flight, in %.

    Raises: NotMeasuredError for an open loop, and where decode steps cannot be told from prefills, or there are none.
    """
    load = _load(expected)
    if load.mode == "open":
        raise NotMeasuredError("an open loop has no number of requests that are meant to be in flight")
    if expected.output_len == 1:
        raise NotMeasuredError("one output token: nothing is decoded after the first")
    if expected.input_len <= load.in_flight:
        raise NotMeasuredError(f"a prefill of {expected.input_len} tokens looks like a decode step of as many requests")
    table = _by_projection(expected, attestation)
    layers = [by_rows for projection, by_rows in table.items() if projection != HEAD and projection not in OPERATORS]
    if not layers or any(by_rows != layers[0] for by_rows in layers):
        raise NotMeasuredError("the projections of a layer do not show the same passes")
    decoded = {m: m * calls for m, calls in layers[0].items() if m <= load.in_flight}
    if not sum(decoded.values()):
        raise NotMeasuredError("no decode step was attested")
    return 100 * decoded.get(load.in_flight, 0) / sum(decoded.values())


def _load(expected: Expected) -> ExpectedLoad:
    if expected.load is None:
        raise NotMeasuredError("a one-batch row has no load")
    return expected.load


def _by_projection(expected: Expected, attestation: Mapping[str, Any]) -> dict[str, Counter[int]]:
    """Calls by rows of every projection that is declared or was observed."""
    table: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for route in expected.routing:
        table[route.projection].update()
    for (projection, m, _), calls in routed(attestation).items():
        if calls:
            table[projection][m] += calls
    return dict(table)


def _apart_alike(expected: Expected, routes: Mapping[tuple[str, int, str], int]) -> Found:
    """Where some modules of a projection take one path and some another, every pass sends as many each way."""
    apart: defaultdict[tuple[str, int], dict[str, int]] = defaultdict(dict)
    for route in expected.routing:
        # A line of a task's table holds for every number of rows.
        seen_rows = [m for name, m, _ in routes if name == route.projection]
        for m in seen_rows if expected.task is not None else [route.m]:
            if route.modules is not None:
                apart[route.projection, m][route.way] = route.modules
    for (projection, m), modules in apart.items():
        shares = {path: Fraction(routes.get((projection, m, path), 0), count) for path, count in modules.items()}
        if len(set(shares.values())) > 1:
            seen = ", ".join(f"{path} x {routes.get((projection, m, path), 0)}" for path in modules)
            wanted = ", ".join(f"{path} x {count}" for path, count in modules.items())
            yield "routing", f"{projection} at M={m}: observed {seen}, each pass has {wanted}"


def _conserved(expected: Expected, load: ExpectedLoad, table: Mapping[str, Counter[int]], needed: Needed) -> Found:
    rows = needed.extended + needed.decoded
    of_layers = {name: by_rows for name, by_rows in table.items() if name not in (HEAD, NORM, *ATTENTION)}
    layers = load.layers
    if layers is None:
        # Then the first projection says how many there are, and the others must agree.
        layers = max(1, _rows(next(iter(of_layers.values()), {})) // max(1, rows))
    wanted = dict.fromkeys(of_layers, layers * rows)
    wanted[HEAD] = needed.sampled
    wanted["extend_attention"] = layers * needed.extended
    wanted["decode_attention"] = layers * needed.decoded
    for name, by_rows in table.items():
        if name in wanted and _rows(by_rows) != wanted[name]:
            text = f"{name} computed {_rows(by_rows)} rows, {needed.by} need {wanted[name]}"
            yield "routing", text + _likely_cause(expected, _rows(by_rows) - wanted[name])
    shown = dict(of_layers)
    if any(name in table for name in ATTENTION):
        shown["attention"] = sum((table[name] for name in ATTENTION if name in table), Counter[int]())
    names = list(shown)
    for name in names[1:]:
        if shown[name] != shown[names[0]]:
            yield "routing", f"{name} and {names[0]} of the same layers show different passes"
    if HEAD in table and names:
        passes, calls = sum(table[HEAD].values()), sum(shown[names[0]].values())
        if calls != layers * passes:
            yield (
                "routing",
                f"{names[0]} was called {calls} times, {layers} layers in {passes} passes need another count",
            )
    if NORM in table and names:
        yield from _norms(load, layers, table[NORM], names[0], shown[names[0]])


def _norms(load: ExpectedLoad, layers: int, norms: ByRows, projection: str, by_rows: ByRows) -> Found:
    """A pass has two norms of all its tokens in each layer, one at its end, and those of queries and keys."""
    needed: Counter[int] = Counter()  # times the layers, for `by_rows` is
    for m, calls in by_rows.items():
        needed[m] += calls * (2 * layers + 1)
        for heads in load.qk_norm_heads:
            needed[m * heads] += calls * layers
    for m in sorted({*needed, *norms}):
        if norms.get(m, 0) * layers != needed[m]:
            wanted = Fraction(needed[m], layers)
            yield (
                "routing",
                f"norm at M={m} was called {norms.get(m, 0)} times, the passes of {projection} need {wanted}",
            )


def _norms_apart(load: ExpectedLoad, table: Mapping[str, ByRows], attestation: Mapping[str, Any]) -> Found:
    """How many of the norms added a residual, where our kernels computed them."""
    ops = attestation.get("ops")
    if load.layers is None or HEAD not in table or not isinstance(ops, dict):
        return
    calls = {op: ops[op].get("calls") for op in (PLAIN_NORM_OP, ADDING_NORM_OP) if op in ops}
    passes = sum(table[HEAD].values())
    wanted = norm_calls(load.layers, passes, qk_norms=bool(load.qk_norm_heads))
    if calls and calls != wanted:
        yield "kernels", f"in {passes} passes the norms need calls {wanted}, the kernels attest {calls}"


def _likely_cause(expected: Expected, too_many: int) -> str:
    """With its overlap schedule on SGLang runs the next step before it knows that a request has ended."""
    if too_many <= 0 or expected.server_args.get("disable_overlap_schedule") is not False:
        return ""
    return " (likely the overlap schedule, which runs a step too many: disable_overlap_schedule is false)"


def _rows(by_rows: ByRows) -> int:
    return sum(m * calls for m, calls in by_rows.items())
