"""Do the events of every process come from the run, the row and the server that the record names?

Records that were written before `supervisor_start` said so hold without it; within a record all say it, or none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rvvbench.record.events import named
from rvvbench.record.finding import Finding
from rvvbench.record.identity import canonical_json
from rvvbench.record.schema import Record, Row

FIELDS = ("run_id", "row", "process_index")
"""What `supervisor_start` says of its process: run, `variant/cache state` and repetition."""


def misplaced(record: Record) -> Iterator[Finding]:
    """Every process whose events are those of another run, row or server."""
    yield from _other_servers(record.rows)
    processes = [process for row in record.rows for process in row.processes]
    starts = [start for process in processes for start in named(process.events, "supervisor_start")]
    silent = sum(not any(field in start for field in FIELDS) for start in starts)
    if 0 < silent < len(starts):
        yield Finding("origin", "rows", f"{silent} of {len(starts)} processes do not say which run they are of")
    for row in record.rows:
        for process in row.processes:
            where = f"row {row.name}, process {process.index}"
            own = {"run_id": record.run_id, "row": f"{row.variant}/{row.cache_state}", "process_index": process.index}
            for start in named(process.events, "supervisor_start"):
                yield from _compared(where, start, own)


def _compared(where: str, start: Mapping[str, Any], own: Mapping[str, Any]) -> Iterator[Finding]:
    if not any(field in start for field in FIELDS):
        return
    for field, value in own.items():
        if canonical_json(start.get(field)) != canonical_json(value):
            yield Finding("origin", where, f"its events say {field} {start.get(field)}, the record {value}")


def _other_servers(rows: Sequence[Row]) -> Iterator[Finding]:
    """The loads of a variant met the same servers: process by process their rows keep the same events."""
    first: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row.expected.load is None:
            continue
        other = first.setdefault((row.variant, row.cache_state), row)
        ours, theirs = ([process.events_sha256 for process in one.processes] for one in (row, other))
        if ours != theirs:
            text = f"its events are not those of {other.name}, of which it is another load"
            yield Finding("origin", f"row {row.name}", text)
