"""From what a run left to rows and a record: everything that can be derived is derived here, and again by `verify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rvvbench.record.accuracy import judged
from rvvbench.record.events import EventsRead, named
from rvvbench.record.figure_set import definition_of, derive, names
from rvvbench.record.identity import digest, identity
from rvvbench.record.schema import (
    CacheState,
    Expected,
    Figure,
    Heading,
    Image,
    Process,
    Record,
    Row,
    RowFigure,
    Target,
)
from rvvbench.record.statistics import summarise
from rvvbench.record.tokens import agreement_of
from rvvbench.record.validity import assess_processes


@dataclass(frozen=True)
class Ran:
    """What one fresh process left behind; `container_exit_code` where the engine saw the container end, `observation`
    (`rvvbench/observation/1`) where the machine was watched, `cache` (`rvvbench/cache-proof/1`) where it had one.
    """

    read: EventsRead
    container_exit_code: int | None = None
    observation: Mapping[str, Any] | None = None
    cache: Mapping[str, Any] | None = None


def build_process(index: int, ran: Ran, expected: Expected) -> Process:
    """The process with its digest, exit status and figures."""
    events = ran.read.events
    exit_code, signal = exit_status(events)
    return Process(
        index=index,
        events=events,
        events_sha256=digest(list(events)),
        damage=ran.read.problems,
        exit_code=exit_code,
        signal=signal,
        container_exit_code=ran.container_exit_code,
        figures=derive(events, expected),
        observation=None if ran.observation is None else dict(ran.observation),
        cache=None if ran.cache is None else dict(ran.cache),
    )


def build_row(
    *,
    variant: str,
    cache_state: CacheState,
    concurrency: int | None = None,
    rate_per_s: float | None = None,
    expected: Expected,
    processes: Sequence[Ran],
) -> Row:
    """A row from what its fresh processes left, in the order they ran; figures and validity are derived.

    Of a server, `processes` is the same for every row: `expected.load` says which of its loads the row is of.
    """
    built = tuple(build_process(index, ran, expected) for index, ran in enumerate(processes))
    return Row(
        variant=variant,
        cache_state=cache_state,
        concurrency=concurrency,
        rate_per_s=rate_per_s,
        expected=expected,
        processes=built,
        figures=row_figures([process.figures for process in built], expected),
        validity=assess_processes(expected, cache_state, built),
    )


def build_record(
    *,
    run_id: str,
    created: str,
    experiment: str,
    title: str,
    heading: Heading,
    target: Target,
    manifest: Mapping[str, Any],
    pins: Mapping[str, Any],
    environment: Mapping[str, str],
    machine: Mapping[str, Any],
    conditions_before: Mapping[str, Any],
    conditions_after: Mapping[str, Any],
    image: Image,
    rows: Sequence[Row],
    replay: str,
    notes: Sequence[str] = (),
) -> Record:
    """The sealed record. Rows come as `build_row` makes them; that they are accurate is judged here, among each other.

    `created` is UTC, ISO 8601. Raises: pydantic.ValidationError where the parts do not fit together.
    """
    validities = judged(rows, [row.validity for row in rows])
    rows = [row.model_copy(update={"validity": one}) for row, one in zip(rows, validities, strict=True)]
    draft = Record(
        run_id=run_id,
        created=created,
        experiment=experiment,
        title=title,
        heading=heading,
        target=target,
        emulated=target.kind == "emulated",
        identity=identity(manifest, pins, environment),
        manifest=dict(manifest),
        pins=dict(pins),
        environment=dict(environment),
        machine=dict(machine),
        conditions_before=dict(conditions_before),
        conditions_after=dict(conditions_after),
        image=image,
        rows=tuple(rows),
        agreement=agreement_of(rows),
        replay=replay,
        notes=tuple(notes),
        seal="0" * 64,
    )
    # Read back, so that the file will have every field of this version, defaults too.
    record = Record.model_validate(draft.whole())
    return record.model_copy(update={"seal": seal_of(record)})


def seal_of(record: Record) -> str:
    """Digest of the record without its seal."""
    plain = record.plain()
    del plain["seal"]
    return digest(plain)


def exit_status(events: Sequence[Mapping[str, Any]]) -> tuple[int | None, int | None]:
    """Exit code and signal of the last `process_end`; (None, None) where nobody saw the process end."""
    ends = named(events, "process_end")
    if not ends:
        return None, None
    exit_code, signal = (ends[-1].get(name) for name in ("exit_code", "signal"))
    return (exit_code if type(exit_code) is int else None), (signal if type(signal) is int else None)


def row_figures(processes: Sequence[Mapping[str, Figure]], expected: Expected) -> dict[str, RowFigure]:
    """Each figure over the processes: null where one process lacks it, for a median of the rest would hide that."""
    return {name: _row_figure(name, [figures[name] for figures in processes], expected) for name in names(expected)}


def _row_figure(name: str, figures: Sequence[Figure], expected: Expected) -> RowFigure:
    definition = definition_of(name, expected)
    values = [figure.value for figure in figures if figure.value is not None]
    reason = None if figures else "no process ran"
    for index, figure in enumerate(figures):
        if figure.value is None:
            reason = figure.reason if len(figures) == 1 else f"process {index}: {figure.reason}"
            break
    if reason is not None:
        return RowFigure(
            median=None,
            min=None,
            max=None,
            n=len(values),
            unit=definition.unit,
            definition=definition.id,
            reason=reason,
        )
    summary = summarise(values)
    return RowFigure(
        median=summary.median,
        min=summary.min,
        max=summary.max,
        n=summary.n,
        unit=definition.unit,
        definition=definition.id,
    )
