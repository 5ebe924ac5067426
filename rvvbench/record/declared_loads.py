"""What a record of a serving run says of its loads, against the manifest that it keeps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import product
from typing import Any

from rvvbench.record.attestation import named_of
from rvvbench.record.declared_caches import states_of
from rvvbench.record.finding import Finding
from rvvbench.record.identity import canonical_json
from rvvbench.record.plain_manifest import HEAD, at, packed_projections
from rvvbench.record.schema import Record, Row


def loads_declared(record: Record, variants: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    """Every variant has a row for each load of the manifest, and for no other, in each cache state."""
    workload = at(record.manifest, "experiment", "workload")
    closed, opened = at(workload, "concurrency"), at(workload, "open_loops")
    declared: list[tuple[Any, ...]] = [
        ("closed", concurrency, None, None) for concurrency in (closed if isinstance(closed, list) else [])
    ]
    for one in opened if isinstance(opened, list) else []:
        declared.append(("open", None, at(one, "arrivals"), at(one, "rate_per_s")))
    states = at(record.manifest, "experiment", "cache_states")
    wanted = [
        canonical_json([name, state, *load])
        for name, variant in variants.items()
        for state, load in product(states_of(variant, states), declared)
    ]
    for row in record.rows:
        load = row.expected.load
        fields = (load.mode, load.concurrency, load.arrivals, load.rate_per_s) if load else ()
        found = canonical_json([row.variant, row.cache_state, *fields])
        if found in wanted:
            wanted.remove(found)
        else:
            yield Finding("declared", f"row {row.name}", f"no such load of it is in the manifest, or twice: {found}")
        yield from _seed_declared(row, opened)
    for missing in wanted:
        yield Finding("declared", "rows", f"there is no row of {missing}, which the manifest has")


def _seed_declared(row: Row, opened: Any) -> Iterator[Finding]:
    """Poisson arrivals were drawn from the seed that the manifest has for this rate."""
    load = row.expected.load
    if load is None or load.arrivals != "poisson" or not isinstance(opened, list):
        return
    rate = canonical_json(["poisson", load.rate_per_s])
    one = next((x for x in opened if canonical_json([at(x, "arrivals"), at(x, "rate_per_s")]) == rate), None)
    seed = at(one, "seed")
    starts = [start for process in row.processes for start in named_of(process.events, "load_start", load.name)]
    drawn = [start.get("seed") for start in starts]
    said = [("expected.load.seed", load.seed)] if load.seed is not None else []
    for where, stored in (*said, *((f"load_start of {load.name}", stored) for stored in drawn)):
        if canonical_json(stored) != canonical_json(seed):
            yield Finding("declared", f"row {row.name}, {where}", f"is seed {stored}, the manifest's is {seed}")


def routing_of_load(record: Record, row: Row, variant: dict[str, Any]) -> Iterator[Finding]:
    """Each projection at every number of rows that the requests in flight can bring, packed where the variant says so.

    A prefill of k prompts brings k x input_len rows (to lm_head k), a decode step one of each request that decodes.
    """
    where, expected = f"row {row.name}, expected.routing", row.expected
    assert expected.load is not None
    packed = packed_projections(variant)
    together = range(1, expected.load.in_flight + 1)
    decode = set(together) if expected.output_len > 1 else set()
    stored: defaultdict[str, set[int]] = defaultdict(set)
    for route in expected.routing:
        path = "packed" if route.projection in packed else "torch"
        if route.path != path or route.calls is not None:
            text = (
                f"{route.projection} at M={route.m} is {route.path} x {route.calls}, by the variant it is {path} x None"
            )
            yield Finding("expected", where, text)
        stored[route.projection].add(route.m)
    for projection in sorted({*packed, HEAD} - stored.keys()):
        yield Finding("expected", where, f"{projection} is not there, and the model has it")
    for projection, rows in stored.items():
        wanted = {k if projection == HEAD else k * expected.input_len for k in together} | decode
        if rows != wanted:
            text = f"{projection} is there at M of {sorted(rows)}, shape and load say {sorted(wanted)}"
            yield Finding("expected", where, text)
