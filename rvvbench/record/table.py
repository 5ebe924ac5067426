"""The comparison table of a record, as data: what stands in which cell, and what has to be said below it.

Rendering is apart (`render`), so that a terminal, Markdown and JSON cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from rvvbench.record.metrics import definition_of
from rvvbench.record.schema import Record, Row, RowAgreement, RowFigure

MIB = 1024.0**2
GIB = 1024.0**3
RATIO_OF = "decode_rate_tokens_per_s"

EMULATED_BANNER = "EMULATED: not board timings; memory includes the emulator"

_FIGURES = (
    ("prefill_s", "Prefill"),
    ("ttft_s", "TTFT"),
    (RATIO_OF, "Decode"),
    ("throughput_total_tokens_per_s", "Total"),
    ("peak_rss_bytes", "Peak RSS"),
)


@dataclass(frozen=True)
class Column:
    """`unit` and `definition` are null for columns without figures."""

    key: str
    title: str
    unit: str | None = None
    definition: str | None = None


@dataclass(frozen=True)
class Cell:
    """`text` is what is shown; `value`, `min` and `max` are exact, in the unit of the record's figure (bytes, not MiB).

    `spread` is the shown form of min to max where there are several processes; `reason` why a figure is null.
    """

    text: str
    value: float | str | None
    min: float | None = None
    max: float | None = None
    n: int | None = None
    spread: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Line:
    """One row of the record; `reasons` are empty exactly when it is valid."""

    name: str
    cells: tuple[Cell, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """`facts` are pairs of name and text to show above, `notes` what cells cite by number, `remarks` the rest."""

    run_id: str
    experiment: str
    title: str
    banner: str | None
    relocked: str | None
    facts: tuple[tuple[str, str], ...]
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...]
    remarks: tuple[str, ...]
    replay: str


@dataclass
class _Notes:
    """Numbers each different text once, in the order of first use."""

    texts: list[str] = field(default_factory=list)

    def cite(self, text: str) -> str:
        if text not in self.texts:
            self.texts.append(text)
        return f"n/a [{self.texts.index(text) + 1}]"


def comparison_table(record: Record) -> Table:
    """The table of all rows, in the record's order. Raises: ValueError where two definitions would share a column."""
    notes = _Notes()
    columns = _columns(record)
    return Table(
        run_id=record.run_id,
        experiment=record.experiment,
        title=record.title,
        banner=EMULATED_BANNER if record.emulated else None,
        relocked=_relocked(record),
        facts=_facts(record),
        columns=columns,
        lines=tuple(_line(record, row, columns, notes) for row in record.rows),
        notes=tuple(notes.texts),
        remarks=_remarks(record),
        replay=record.replay,
    )


def significant(value: float, digits: int = 3) -> str:
    """`value` in decimal, with at least `digits` significant digits and every digit before the point: 2 -> "2.00"."""
    if value == 0:
        return "0"
    # Rounded first: 0.9996 has its first digit before the point once it is rounded to three digits.
    magnitude = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    return f"{value:.{max(0, digits - 1 - magnitude)}f}"


def _columns(record: Record) -> tuple[Column, ...]:
    columns = [Column("variant", "Variant"), Column("cache", "Cache")]
    if any(row.concurrency is not None for row in record.rows):
        columns.append(Column("concurrency", "Conc."))
    for name, title in _FIGURES:
        present = [row.figures[name] for row in record.rows if name in row.figures]
        definitions = {figure.definition for figure in present} or {definition_of(name, emulated=record.emulated).id}
        if len(definitions) > 1:
            raise ValueError(f"two definitions of {name} cannot share a column: {', '.join(sorted(definitions))}")
        columns.append(Column(name, title, _unit(name, present), definitions.pop()))
        if name == RATIO_OF:
            columns.append(Column("ratio", "Ratio", "emulated" if record.emulated else "to first"))
    return (*columns, Column("tokens", "Tokens"), Column("validity", "Validity"))


def _unit(name: str, figures: Sequence[RowFigure]) -> str:
    if not name.endswith("_bytes"):
        return definition_of(name, emulated=False).unit
    largest = max((figure.max for figure in figures if figure.max is not None), default=0.0)
    return "GiB" if largest >= GIB else "MiB"


def _line(record: Record, row: Row, columns: Sequence[Column], notes: _Notes) -> Line:
    return Line(row.name, tuple(_cell(record, row, column, notes) for column in columns), _reasons(row))


def _cell(record: Record, row: Row, column: Column, notes: _Notes) -> Cell:
    if column.key == "variant":
        return Cell(row.variant, row.variant)
    if column.key == "cache":
        return Cell(row.cache_state, row.cache_state)
    if column.key == "concurrency":
        return Cell("-" if row.concurrency is None else str(row.concurrency), row.concurrency)
    if column.key == "ratio":
        return _ratio(record.rows[0], row)
    if column.key == "tokens":
        return _tokens(record, row, notes)
    if column.key == "validity":
        return Cell("valid" if row.validity.valid else "INVALID", row.validity.status)
    return _figure(row, column, notes)


def _figure(row: Row, column: Column, notes: _Notes) -> Cell:
    figure = row.figures.get(column.key)
    if figure is None or figure.median is None or figure.min is None or figure.max is None:
        reason = (figure.reason if figure else None) or "the record lacks this figure"
        return Cell(notes.cite(f"{row.name}: {reason}"), None, reason=reason)
    scale = {"MiB": MIB, "GiB": GIB}.get(column.unit or "", 1.0)
    spread = f"{significant(figure.min / scale)}-{significant(figure.max / scale)}" if figure.n > 1 else None
    return Cell(significant(figure.median / scale), figure.median, figure.min, figure.max, figure.n, spread)


def _ratio(first: Row, row: Row) -> Cell:
    if not (first.validity.valid and row.validity.valid):
        return Cell("-", None, reason="a ratio needs two valid rows")
    ours, theirs = row.figures.get(RATIO_OF), first.figures.get(RATIO_OF)
    if ours is None or theirs is None or ours.median is None or theirs.median is None:
        return Cell("-", None, reason="a ratio needs two decode rates")
    ratio = ours.median / theirs.median
    return Cell(f"{significant(ratio, 2 if ratio >= 2 else 3)}x", ratio)


def _tokens(record: Record, row: Row, notes: _Notes) -> Cell:
    if row.name == record.agreement.reference:
        return Cell("reference", "reference")
    found = _agreement_of(record, row)
    if found is None or found.tokens_equal is None:
        reason = (found.reason if found else None) or "the record does not compare this row's tokens"
        return Cell(notes.cite(f"{row.name}: {reason}"), None, reason=reason)
    return Cell("equal", "equal") if found.tokens_equal else Cell("DIFFER", "differ")


def _agreement_of(record: Record, row: Row) -> RowAgreement | None:
    return next((one for one in record.agreement.rows if one.row == row.name), None)


def _reasons(row: Row) -> tuple[str, ...]:
    """Each different reason once, with the processes that it holds for where not all of several."""
    processes: dict[tuple[str, str], list[int]] = {}
    for reason in row.validity.reasons:
        processes.setdefault((reason.id, reason.text), []).extend([] if reason.process is None else [reason.process])
    texts = []
    for (id_, text), where in processes.items():
        some = where and len(row.processes) > 1 and len(where) < len(row.processes)
        texts.append(f"{id_}: {text}" + (f" (process {', '.join(map(str, where))})" if some else ""))
    return tuple(texts)


def _relocked(record: Record) -> str | None:
    relocked = record.image.relocked
    if relocked is None:
        return None
    shown = [f"{one.name} {one.locked or 'absent'} -> {one.used or 'absent'}" for one in relocked.differences]
    more = f" and {len(shown) - 6} more" if len(shown) > 6 else ""
    listed = f": {', '.join(shown[:6])}{more}" if shown else ""
    return f"RELOCKED: not the image of the lock ({relocked.reason}){listed}"


def _facts(record: Record) -> tuple[tuple[str, str], ...]:
    heading, target = record.heading, record.target
    place = f"{target.kind} ({target.name})" if target.name else target.kind
    if target.kind == "host":
        place += f", {record.rows[0].expected.machine}: no RVV, not board timings"
    threads = sorted({row.expected.threads for row in record.rows})
    return (
        ("Model", f"{heading.model}, {heading.weights} weights, {heading.dtype}, TP {heading.tensor_parallel}"),
        ("Shape", f"batch {heading.batch_size}, {heading.input_len} tokens in, {heading.output_len} out"),
        ("Target", f"{place}, {', '.join(map(str, threads))} thread{'' if threads == [1] else 's'}"),
        ("Image", f"{record.image.name} {record.image.arch} {record.image.digest[:19]}"),
        ("Run", record.run_id),
        ("Made", f"{record.created}, identity {record.identity[:12]}"),
    )


def _remarks(record: Record) -> tuple[str, ...]:
    counts = sorted({len(row.processes) for row in record.rows})
    if counts == [1]:
        remarks = ["One process for each row: no spread is known and no difference can be called significant."]
    else:
        remarks = [f"Median (min-max) of {' or '.join(map(str, counts))} fresh processes."]
    for row in record.rows:
        found = _agreement_of(record, row)
        if found is not None and found.tokens_equal is not None:
            remarks.append(_agreement_remark(record.agreement.reference, found))
    return (*remarks, *record.notes)


def _agreement_remark(reference: str, found: RowAgreement) -> str:
    difference = found.max_logprob_difference
    known = "" if difference is None else f"; log-probabilities differ by at most {difference:.2g}"
    parted = found.first_difference
    if parted is None:
        return f"Tokens of {found.row} equal those of {reference}{known}."
    margin = "" if parted.reference_margin is None else f" (its top-2 margin there: {parted.reference_margin:.2g})"
    return (
        f"Tokens of {found.row} part from {reference} at output token {parted.position + 1} of sequence "
        f"{parted.sequence}: {parted.token} for {parted.reference_token}{margin}{known} before."
    )
