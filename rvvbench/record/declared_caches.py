"""What a record says of compiling and of caches, against the manifest that it keeps, and row against row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rvvbench.record.finding import Finding
from rvvbench.record.identity import canonical_json
from rvvbench.record.plain_manifest import at
from rvvbench.record.plain_model import Variant, compiles
from rvvbench.record.schema import Process, Record, Row

COMPILE_ARGS = ("enable_cpu_rvv_inductor", "cpu_compile_mode", "cpu_rvv_packed_weight_mode")
"""Fields of ServerArgs that the plugin adds, of which those of `compile_args` are sent."""

COMPILE_VARIABLES = {
    "CXX": "/rvvbench/runner/compiler/g++",
    "TORCHINDUCTOR_CACHE_DIR": "/rvvbench/cache",
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    # The compiler is not asked at every start whether it can do what /proc/cpuinfo says.
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
}
"""Of every process that compiles."""


def states_of(variant: Variant, states: Any) -> list[Any]:
    """The cache states that rows of `variant` have; what compiles nothing has none, whatever the experiment says."""
    if not compiles(variant):
        return ["none"]
    return [state for state in states if state != "none"] if isinstance(states, list) else []


def compile_args(variant: Variant) -> dict[str, Any]:
    """What such a variant gives to SGLang, as short as it can be said."""
    if not compiles(variant):
        return {}
    packed = variant.get("packed_weight_mode")
    if variant.get("small_batch") is True:
        return {"enable_cpu_rvv_inductor": True} | ({"cpu_rvv_packed_weight_mode": "off"} if packed == "off" else {})
    return {"cpu_compile_mode": "regional", "cpu_rvv_packed_weight_mode": packed}


def caches_come_from(record: Record) -> Iterator[Finding]:
    """A warm process that names a cold one of this record had the cache that it left, by the same key."""
    cold = {(f"{row.variant}/{row.cache_state}", one.index): one for row, one in _processes(record) if one.cache}
    for row, process in _processes(record):
        origin = at(process.cache, "origin")
        if row.cache_state != "warm" or not isinstance(origin, dict) or origin.get("run_id") != record.run_id:
            continue
        where = f"row {row.name}, process {process.index}, cache"
        made = cold.get((str(origin.get("row")), int(origin.get("process") or 0)))
        if made is None:
            yield Finding("cache", where, f"comes from {origin.get('row')}, which has no such process in this record")
            continue
        for field, stored, left in (
            ("before", at(process.cache, "before"), at(made.cache, "after")),
            ("key", at(process.cache, "key"), at(made.cache, "key")),
        ):
            if canonical_json(stored) != canonical_json(left):
                yield Finding("cache", where, f"{field} is {stored}, the cold process that made it left {left}")


def _processes(record: Record) -> Iterator[tuple[Row, Process]]:
    for row in record.rows:
        for process in row.processes:
            yield row, process
