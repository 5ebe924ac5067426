"""A record checked against itself: every figure derived again from its raw events, and compared exactly; and what it
says twice, compared with manifest and pins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rvvbench.record.accuracy import judged
from rvvbench.record.build import exit_status, row_figures, seal_of
from rvvbench.record.declared import disagreements
from rvvbench.record.figure_set import derive
from rvvbench.record.finding import Finding
from rvvbench.record.identity import digest, identity
from rvvbench.record.origin import misplaced
from rvvbench.record.schema import Figure, Process, Record, Row, RowFigure, Validity
from rvvbench.record.tokens import NEWEST, agreement_of
from rvvbench.record.validity import assess


def verify(record: Record) -> list[Finding]:
    """Every finding, none for a record that holds. An honestly invalid row is no finding."""
    findings = [*_whole(record), *disagreements(record), *misplaced(record)]
    validities = judged(record.rows, [assess(row) for row in record.rows])
    for row, validity in zip(record.rows, validities, strict=True):
        findings += _row(row, validity)
    return findings


def _whole(record: Record) -> Iterator[Finding]:
    derived = identity(record.manifest, record.pins, record.environment)
    if derived != record.identity:
        yield Finding("identity", "identity", f"stored {record.identity}, manifest, pins and environment say {derived}")
    limited = any(row.expected.accuracy for row in record.rows)
    agreement = agreement_of(record.rows, NEWEST if limited else record.agreement.definition)
    if agreement != record.agreement:
        yield Finding("agreement", "agreement", "the stored token agreement is not what the events say")
    if seal_of(record) != record.seal:
        yield Finding("seal", "seal", "the record was changed after it was written")


def _row(row: Row, validity: Validity) -> Iterator[Finding]:
    where = f"row {row.name}"
    derived = [derive(process.events, row.expected) for process in row.processes]
    for process, figures in zip(row.processes, derived, strict=True):
        yield from _process(f"{where}, process {process.index}", process, figures)
    # From what was derived, not from the stored figures: a figure that was changed in both places must still show.
    yield from _figures(where, row.figures, row_figures(derived, row.expected))
    if validity != row.validity:
        yield Finding("validity", where, f"stored {_said(row.validity)}; the events say {_said(validity)}")


def _process(where: str, process: Process, derived: Mapping[str, Figure]) -> Iterator[Finding]:
    if digest(list(process.events)) != process.events_sha256:
        yield Finding("events", where, "the raw events are not those that were written")
    if (process.exit_code, process.signal) != exit_status(process.events):
        yield Finding("exit-status", where, "the stored exit status is not the one in the events")
    yield from _figures(where, process.figures, derived)


def _figures(
    where: str, stored: Mapping[str, Figure | RowFigure], derived: Mapping[str, Figure | RowFigure]
) -> Iterator[Finding]:
    for name in dict.fromkeys([*derived, *stored]):
        if name not in stored:
            yield Finding("figure", f"{where}, {name}", "the record lacks it")
        elif name not in derived:
            yield Finding("figure", f"{where}, {name}", "no definition of this version gives it")
        elif stored[name] != derived[name]:
            yield Finding(
                "figure", f"{where}, {name}", f"stored {_shown(stored[name])}, derived {_shown(derived[name])}"
            )


def _shown(figure: Figure | RowFigure) -> str:
    if isinstance(figure, Figure):
        said = repr(figure.value)
    else:
        said = f"{figure.median!r} [{figure.min!r}, {figure.max!r}] n={figure.n}"
    return f"{said} {figure.unit} ({figure.definition}{', ' + figure.reason if figure.reason else ''})"


def _said(validity: Validity) -> str:
    if validity.valid:
        return "valid"
    return "invalid: " + "; ".join(reason.text for reason in validity.reasons[:3])
