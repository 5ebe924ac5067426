"""The comparison table of a record, as data: what stands in which cell, and what has to be said below it.

Rendering is apart (`render`), so that a terminal, Markdown and JSON cannot disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rvvbench.record import accuracy_table, packing_table, serving_table, task_table
from rvvbench.record.answer import GAIN_OF, answers, first_of, ratio
from rvvbench.record.compile_figure import COMPILE
from rvvbench.record.disturbance import disturbances, is_disturbed
from rvvbench.record.failure import failed_before, failures, reason_texts
from rvvbench.record.figure_set import ALL_DEFINITIONS, definition_of
from rvvbench.record.schema import Expected, Record, Row, RowFigure
from rvvbench.record.server_switches import switched
from rvvbench.record.table_parts import GIB, MIB, Cell, Column, Line, Notes, Table, significant

RATIO_OF = "decode_rate_tokens_per_s"

_RATES = {RATIO_OF: "decode rates", GAIN_OF: "throughputs"}

EMULATED_BANNER = "EMULATED: not board timings; memory includes the emulator"

_RATIO_TEXT = "Decode rate over that of the first row."
_GAIN_TEXT = "Output over that of the variant's first load."

_FIGURES = (
    ("prefill_s", "Prefill"),
    ("ttft_s", "TTFT"),
    (RATIO_OF, "Decode"),
    ("throughput_total_tokens_per_s", "Total"),
    ("peak_rss_bytes", "Peak RSS"),
)


def comparison_table(record: Record) -> Table:
    """The table of all rows, in the record's order. Raises: ValueError where two definitions would share a column."""
    notes = Notes()
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
        failures=failures(record),
        disturbances=disturbances(record),
        answers=_answers(record),
    )


def _answers(record: Record) -> tuple[str, ...]:
    match record.heading.workload:
        case "serving":
            return answers(record)
        case "eval":
            return task_table.answers(record)
    return ()


def _columns(record: Record) -> tuple[Column, ...]:
    serving, task = record.heading.workload == "serving", record.heading.workload == "eval"
    to_first = "emulated" if record.emulated else "to first"
    columns = [Column("variant", "Variant")]
    # A server's table is wide, and its cache state is of interest only where there is one.
    if not (serving or task) or any(row.cache_state != "none" for row in record.rows):
        columns.append(Column("cache", "Cache"))
    if not task and any(row.concurrency is not None for row in record.rows):
        columns.append(Column("concurrency", "Conc."))
    if any(row.rate_per_s is not None for row in record.rows):
        columns.append(Column("rate", "Rate", "1/s"))
    columns += packing_table.columns(record)
    figures = {"serving": serving_table.FIGURES, "eval": task_table.FIGURES}.get(record.heading.workload, _FIGURES)
    if any(row.expected.compiles for row in record.rows):
        figures = (*figures, (COMPILE.name, COMPILE.title))
    for name, title in figures:
        present = [row.figures[name] for row in record.rows if name in row.figures]
        expected = record.rows[0].expected
        definitions = {figure.definition for figure in present} or {definition_of(name, expected).id}
        if len(definitions) > 1:
            raise ValueError(f"two definitions of {name} cannot share a column: {', '.join(sorted(definitions))}")
        definition = definitions.pop()
        text = ALL_DEFINITIONS[definition].text if definition in ALL_DEFINITIONS else None
        columns.append(Column(name, title, _unit(name, present, expected), definition, text))
        if not (serving or task) and name == RATIO_OF:
            columns.append(Column("ratio", "Ratio", to_first, text=_RATIO_TEXT))
        if serving and name == GAIN_OF:
            columns.append(Column("gain", "Gain", to_first, text=_GAIN_TEXT))
    agreement = Column("tokens", "Answers" if task else "Tokens")
    return (*columns, agreement, *accuracy_table.columns(record), Column("validity", "Validity"))


def _unit(name: str, figures: Sequence[RowFigure], expected: Expected) -> str:
    if not name.endswith("_bytes"):
        return definition_of(name, expected).unit
    largest = max((figure.max for figure in figures if figure.max is not None), default=0.0)
    return "GiB" if largest >= GIB else "MiB"


def _line(record: Record, row: Row, columns: Sequence[Column], notes: Notes) -> Line:
    cells = tuple(_cell(record, row, column, notes) for column in columns)
    figures = row.figures if row.expected.load else None
    return Line(row.name, cells, reason_texts(row, row.validity.reasons), figures, is_disturbed(row))


def _cell(record: Record, row: Row, column: Column, notes: Notes) -> Cell:
    if column.key == "variant":
        return Cell(row.variant, row.variant)
    if column.key == "cache":
        return Cell(row.cache_state, row.cache_state)
    if column.key == "concurrency":
        return Cell("-" if row.concurrency is None else str(row.concurrency), row.concurrency)
    if column.key == "rate":
        return Cell("-" if row.rate_per_s is None else f"{row.rate_per_s:g}", row.rate_per_s)
    if column.key == "ratio":
        return _ratio(record.rows[0], row, RATIO_OF)
    if column.key == "gain":
        return _ratio(first_of(record, row), row, GAIN_OF)
    if column.key == "tokens":
        return accuracy_table.tokens(record, row, lambda reason: _cited(row, reason, notes))
    if column.key == accuracy_table.LOGPROB:
        return accuracy_table.logprobs(record, row, lambda reason: _cited(row, reason, notes))
    if column.key in (packing_table.BUDGET, packing_table.PACKED):
        return packing_table.cell(record, row, column)
    if column.key == "validity":
        if row.validity.valid and accuracy_table.goes_unjudged(record, row):
            return Cell("valid, accuracy not judged", row.validity.status)
        return Cell("valid" if row.validity.valid else "INVALID", row.validity.status)
    return _figure(row, column, notes)


def _figure(row: Row, column: Column, notes: Notes) -> Cell:
    if column.key == COMPILE.name and not row.expected.compiles:
        return Cell("-", None, reason="nothing compiles")
    figure = row.figures.get(column.key)
    if figure is None or figure.median is None or figure.min is None or figure.max is None:
        reason = (figure.reason if figure else None) or "the record lacks this figure"
        return Cell(_cited(row, reason, notes), None, reason=reason)
    scale = {"MiB": MIB, "GiB": GIB}.get(column.unit or "", 1.0)
    median, least, most = (_written(value / scale, column) for value in (figure.median, figure.min, figure.max))
    spread = f"{least}-{most}" if figure.n > 1 else None
    return Cell(median, figure.median, figure.min, figure.max, figure.n, spread)


def _written(value: float, column: Column) -> str:
    """A count is written whole; half of one is the median of two."""
    return f"{value:g}" if column.unit in task_table.COUNTS and value < 1e6 else significant(value)


def _cited(row: Row, reason: str, notes: Notes) -> str:
    """The text of a null cell. All nulls of a server that failed before the row's load have one reason, its failure."""
    failed = failed_before(row)
    if failed is None:
        return notes.cite(f"{row.name}: {reason}")
    return notes.cite(f"{row.variant}/{row.cache_state}: {failed}")


def _ratio(first: Row, row: Row, name: str) -> Cell:
    if not (first.validity.valid and row.validity.valid):
        return Cell("-", None, reason="a ratio needs two valid rows")
    found = ratio(first, row, name)
    if found is None:
        return Cell("-", None, reason=f"a ratio needs two {_RATES[name]}")
    return Cell(f"{significant(found, 2 if name == RATIO_OF and found >= 2 else 3)}x", found)


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
        *_shape(record),
        ("Target", f"{place}, {', '.join(map(str, threads))} thread{'' if threads == [1] else 's'}"),
        *(("Server", text) for text in switched(record)),
        ("Image", f"{record.image.name} {record.image.arch} {record.image.digest[:19]}"),
        ("Run", record.run_id),
        ("Made", f"{record.created}, identity {record.identity[:12]}"),
    )


def _shape(record: Record) -> Iterator[tuple[str, str]]:
    heading = record.heading
    if heading.workload == "eval":
        concurrency = record.rows[0].concurrency
        yield "Task", f"{task_table.shape(heading)}, {concurrency} at once"
        yield "Data", str(heading.dataset)
        return
    shape = f"batch {heading.batch_size}" if heading.requests is None else f"{heading.requests} requests for each load"
    yield "Shape", f"{shape}, {heading.input_len} tokens in, {heading.output_len} out"


def _remarks(record: Record) -> tuple[str, ...]:
    counts = sorted({len(row.processes) for row in record.rows})
    if counts == [1]:
        remarks = ["One process for each row: no spread is known and no difference can be called significant."]
    else:
        remarks = [f"Median (min-max) of {' or '.join(map(str, counts))} fresh processes."]
    remarks += [*accuracy_table.remarks(record), *packing_table.remarks(record)]
    if record.heading.workload == "serving":
        remarks += serving_table.remarks(record)
    if record.heading.workload == "eval":
        remarks += task_table.remarks(record)
    return (*remarks, *record.notes)
