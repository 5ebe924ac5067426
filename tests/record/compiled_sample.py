"""Rows of a variant that compiles: a cold process that made its cache, and a warm one that took it."""

from __future__ import annotations

import copy
from typing import Any

from rvvbench.record.build import Ran, build_row
from rvvbench.record.events import EventsRead
from rvvbench.record.identity import digest
from rvvbench.record.schema import Record, Row

from . import sample, whole_model
from .sample import Event

VARIANT = "inductor-packed"
RUN_ID = "r"
EMPTY = digest({})

_GRAPHS = 9
_COLD = {"hit": 0, "miss": _GRAPHS}
_WARM = {"hit": _GRAPHS, "miss": 0}


def artifacts(variant: str = VARIANT) -> list[dict[str, Any]]:
    routes = whole_model.expected(variant).routing
    places = sorted({(route.projection, route.bucket) for route in routes if route.bucket is not None})
    mode = "row_major" if variant == "inductor-row-major" else "explicit_packed"
    return [
        {
            "projection": name,
            "bucket": bucket,
            "mode": mode,
            "so": f"ab/{name}{bucket}.main.so",
            "sha256": digest([name, bucket]),
            "vector_instructions": None,
        }
        for name, bucket in places
    ]


def compiled(state: str, **changes: Any) -> Event:
    """The event of a process whose cache was in this state."""
    counts = _COLD if state == "cold" else _WARM
    return {
        "event": "compiled",
        "t_ns": 10**11,
        "pid": 100,
        "graphs": _GRAPHS,
        "graphs_before": _GRAPHS,
        "inductor": {f"fxgraph_cache_{what}": count for what, count in counts.items() if count},
        "aot_autograd": {f"autograd_cache_{what}": count for what, count in counts.items() if count},
        "compile_seconds": 180.0 if state == "cold" else 2.5,
        "artifacts": artifacts(),
        **changes,
    }


def key() -> dict[str, Any]:
    return {"threads": 1, "vlen": 256, "isa": "riscv64"}


def proof(state: str, **changes: Any) -> dict[str, Any]:
    """What was seen of such a process from outside."""
    libraries = {one["so"]: one["sha256"] for one in artifacts()}
    full = {"entries": 2 * len(libraries), "sha256": digest(libraries)}
    queries = [{"query": "--version", "source": None, "output": None, "march": None}]
    compilations = [{"query": None, "source": "x.cpp", "output": so, "march": "rv64gcv"} for so in libraries]
    cold = state == "cold"
    return {
        "schema": "rvvbench/cache-proof/1",
        "state": state,
        "key": key(),
        "digest": digest(key())[:16],
        "origin": None if cold else {"run_id": RUN_ID, "row": f"{VARIANT}/cold", "process": 0},
        "before": {"entries": 0, "sha256": EMPTY} if cold else full,
        "after": full,
        "added": sorted([*libraries, *(so.replace(".so", ".cpp") for so in libraries)]) if cold else [],
        "changed": [],
        "removed": [],
        "libraries": libraries,
        "compiler_calls": [*queries, *compilations] if cold else queries,
        **changes,
    }


def row(state: str, event: Event | None = None, seen: dict[str, Any] | None = None, **of: Any) -> Row:
    """The row of one process in this state; `event` and `seen` replace what it said and what was seen of it."""
    expects = whole_model.expected(VARIANT)
    happened = sample.events(expects=expects, **of)
    last = happened.pop()
    told = compiled(state) if event is None else event
    happened += [*([told] if told else []), last]
    ran = Ran(EventsRead(tuple(happened)), cache=proof(state) if seen is None else (seen or None))
    return build_row(variant=VARIANT, cache_state=state, expected=expects, processes=[ran])  # type: ignore[arg-type]


def record(*rows: Row) -> Record:
    """The record of a torch-native row and these."""
    return whole_model.record(whole_model.row("torch-native"), *rows)


def copied(value: Any) -> Any:
    return copy.deepcopy(value)
