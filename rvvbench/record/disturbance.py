"""What disturbed the machine while rows were measured and made none of them invalid: on a host or under emulation the
observation only notes it, and a reader of the table must see it all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from rvvbench.record.schema import Record, Row

NOTED = ", which is no reason on this target: "
"""Stands in a note of `rvvbench/observation/1` between the id and the text of a finding that does not count."""

_MEANWHILE = {"disturbed": "Disturbed", "throttled": "Throttled", "swapped": "Swapped"}
_BEFORE = "not-ready"
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
_LIMIT = re.compile(r" over [\d.]+ s|, at most |; 0 belongs| \(waited ")


def is_disturbed(row: Row) -> bool:
    """Whether something disturbed one of its processes while it was measured, be it a reason against the row or not.
    A machine that was busy only before the process is not meant.
    """
    return any(
        id_ in _MEANWHILE for id_ in (*(id_ for id_, _ in noted(row)), *(one.id for one in row.validity.reasons))
    )


def noted(row: Row) -> Iterator[tuple[str, str]]:
    """Id and text of each finding that the row's observations note without making it a reason."""
    for process in row.processes:
        notes = process.observation.get("notes") if isinstance(process.observation, Mapping) else None
        for note in notes if isinstance(notes, list) else ():
            id_, between, text = str(note).partition(NOTED)
            if between:
                yield id_, text


def disturbances(record: Record) -> tuple[str, ...]:
    """A line for each kind of disturbance, with the rows that it concerns; none where the machine was at rest."""
    lines = [f"{title}: {_concerned(record, id_)}" for id_, title in _MEANWHILE.items() if _rows(record, id_)]
    before = [text for row in record.rows for id_, text in noted(row) if id_ == _BEFORE]
    if before:
        unrest = f"the machine was not at rest before ({'; '.join(ranged(before))})"
        lines = [f"{lines[0]}; {unrest}", *lines[1:]] if lines else [f"Not at rest: {unrest}"]
    if not lines:
        return ()
    warning = f"No reason on target {record.target.kind}, but do not quote these timings."
    return (*(f"{line}." for line in lines[:-1]), f"{lines[-1]}. {warning}")


def ranged(texts: Iterable[str]) -> list[str]:
    """Each different text once, without the limit that it names. Texts that differ in their numbers only become one,
    with the smallest and the largest: "others used 1.28 to 1.77 CPUs".
    """
    found: dict[str, list[list[str]]] = {}
    for text in texts:
        cut = _LIMIT.split(text, maxsplit=1)[0]
        found.setdefault(_NUMBER.sub("\0", cut), []).append(_NUMBER.findall(cut))
    merged = []
    for skeleton, numbers in found.items():
        words = skeleton.split("\0")
        spans = [_span(place) for place in zip(*numbers, strict=True)]
        merged.append("".join(word + span for word, span in zip(words, [*spans, ""], strict=True)))
    return merged


def named(rows: Sequence[Row]) -> str:
    """The rows by variant: "torch-native c1 and c2, rvv-kernels c1"."""
    parts = []
    for stem, group in groupby(rows, key=_stem):
        loads = [row.expected.load.name for row in group if row.expected.load]
        parts.append(f"{stem} {listed(loads)}" if loads else stem)
    return ", ".join(parts)


def listed(names: Sequence[str]) -> str:
    """ "c1, c2 and c4"."""
    return " and ".join([*([", ".join(names[:-1])] if names[:-1] else []), *names[-1:]])


def _stem(row: Row) -> str:
    return row.variant if row.cache_state == "none" else f"{row.variant}/{row.cache_state}"


def _rows(record: Record, id_: str) -> list[Row]:
    return [row for row in record.rows if any(noted_id == id_ for noted_id, _ in noted(row))]


def _concerned(record: Record, id_: str) -> str:
    rows = _rows(record, id_)
    texts = [text for row in rows for noted_id, text in noted(row) if noted_id == id_]
    every = len(rows) == len(record.rows) > 1
    verb = "was" if every or (len(rows) == 1) else "were"
    return f"{'; '.join(ranged(texts))} while {'every row' if every else named(rows)} {verb} measured"


def _span(numbers: Sequence[str]) -> str:
    smallest, largest = min(numbers, key=float), max(numbers, key=float)
    return smallest if float(smallest) == float(largest) else f"{smallest} to {largest}"
