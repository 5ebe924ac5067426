"""Why rows are not valid, as it is shown: a server that failed is one cause, and what follows from it is only counted.

The record, and a table's JSON, keep every reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from rvvbench.record.disturbance import listed
from rvvbench.record.events import named
from rvvbench.record.plain_manifest import at
from rvvbench.record.schema import Reason, Record, Row
from rvvbench.record.timeline import is_number

SHOWN = 8

_ROOT = "error"
_NEVER_RAN = "load-missing"
_FOLLOWS = frozenset(
    {
        "process-failed",
        "process-not-ended",
        "container-failed",
        "events-incomplete",
        "warmup",
        "load-missing",
        "attestation",
    }
)
_LIMIT = re.compile(r"\(timeouts_s\.(\w+)\)")


@dataclass(frozen=True)
class Failure:
    """Rows that are not valid for the same `reasons`: "torch-native/none/c1 and c2"."""

    rows: str
    reasons: tuple[str, ...]


def failures(record: Record) -> tuple[Failure, ...]:
    """The rows that are not valid; neighbours of one variant that show the same reasons are one failure."""
    invalid = [row for row in record.rows if not row.validity.valid]
    keyed = groupby(invalid, key=lambda row: (row.variant, row.cache_state, _shown(row, record.manifest)))
    return tuple(Failure(_names(list(rows)), reasons) for (_, _, reasons), rows in keyed)


def mends(record: Record) -> tuple[str, ...]:
    """What a user can do about the rows that are not valid, where the record tells; each once."""
    errors = [one for row in record.rows for one in row.validity.reasons if one.id == _ROOT]
    return tuple(dict.fromkeys(mend for one in errors for mend in _mend(one, record.manifest)))


def failed_before(row: Row) -> str | None:
    """Why no process of the row came to its load: one cause for everything that it lacks. None where one did."""
    if row.expected.load is None or not row.processes or len(_cut_short(row.validity.reasons)) < len(row.processes):
        return None
    ready = any(named(process.events, "server_ready") for process in row.processes)
    return "the server failed before this load" if ready else "the server never came up"


def reason_texts(row: Row, reasons: Sequence[Reason]) -> tuple[str, ...]:
    """Each different reason once, with the processes that it holds for where not all of several."""
    processes: dict[tuple[str, str], list[int]] = {}
    for reason in reasons:
        processes.setdefault((reason.id, reason.text), []).extend([] if reason.process is None else [reason.process])
    texts = []
    for (id_, text), where in processes.items():
        some = where and len(row.processes) > 1 and len(where) < len(row.processes)
        texts.append(f"{id_}: {text}" + (f" (process {', '.join(map(str, where))})" if some else ""))
    return tuple(texts)


def _shown(row: Row, manifest: Mapping[str, object]) -> tuple[str, ...]:
    cut_short = _cut_short(row.validity.reasons)
    follow = [one for one in row.validity.reasons if one.id in _FOLLOWS and one.process in cut_short]
    own = [one for one in row.validity.reasons if one not in follow]
    # The cause first, then the mend for it.
    texts = reason_texts(row, sorted(own, key=lambda reason: reason.id != _ROOT))
    hidden = len(texts) - SHOWN
    follows = len(reason_texts(row, follow))
    return (
        *texts[:SHOWN],
        *([f"and {hidden} more, in the record"] if hidden > 0 else []),
        *([f"and what follows from it: {follows} more, in the record"] if follows else []),
        *dict.fromkeys(f"mend: {mend}" for one in own if one.id == _ROOT for mend in _mend(one, manifest)),
    )


def _cut_short(reasons: Sequence[Reason]) -> set[int]:
    """The processes that an error ended before the row's load began."""
    of = {id_: {one.process for one in reasons if one.id == id_} for id_ in (_ROOT, _NEVER_RAN)}
    return {process for process in of[_ROOT] & of[_NEVER_RAN] if process is not None}


def _mend(error: Reason, manifest: Mapping[str, object]) -> list[str]:
    """For an error that names a time limit of the manifest: twice that limit."""
    for name in _LIMIT.findall(error.text):
        limit_s = at(manifest, "experiment", "timeouts_s", name)
        if is_number(limit_s):
            return [f"where the machine was only busy, give it longer: --set timeouts_s.{name}={2 * limit_s:g}"]
    return []


def _names(rows: Sequence[Row]) -> str:
    first = rows[0].name
    return listed([first, *(row.name.rpartition("/")[2] for row in rows[1:])])
