"""The requests of each row under our definitions and under those of other tools; and SGLang's own tool beside ours.

As data; `render_definitions` shows it. Times are medians in s: over the requests of a load (ITL: over all its gaps
together), and over the row's servers where there are several.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rvvbench.record.client_lag import lag_remarks
from rvvbench.record.cross_check import failures, note, option, why_broken
from rvvbench.record.events import named
from rvvbench.record.figure_set import definition_of
from rvvbench.record.metrics import emulated_id
from rvvbench.record.other_tools import OTHER_DEFINITIONS, TOOLS, definitions, medians_s
from rvvbench.record.request_timeline import RequestTimeline, requests
from rvvbench.record.schema import Figure, Process, Record, Row, RowFigure
from rvvbench.record.table import EMULATED_BANNER
from rvvbench.record.timeline import is_number

OURS = "ours"
METRICS = ("ttft", "tpot", "itl")


@dataclass(frozen=True)
class Time:
    """A median in s, null exactly when `reason` says why; `definition` is an id, or the tool's own name of it."""

    value_s: float | None
    definition: str
    reason: str | None = None


@dataclass(frozen=True)
class DefinitionLine:
    """A row's requests under the definitions of one tool, or ours."""

    row: str
    tool: str
    times: Mapping[str, Time]


@dataclass(frozen=True)
class CrossLine:
    """One metric of one server: from our requests, from the same by SGLang's definition, and from SGLang's own tool,
    which asked the same server with other prompts. `difference_percent` is of the tool's to ours by its definition, if
    we have it; `note` says whether it can be judged, and what differs between the definitions.
    """

    row: str
    process: int
    metric: str
    ours: Time
    as_tool: Time
    tool: Time
    difference_percent: float | None
    note: str


@dataclass(frozen=True)
class DefinitionsTable:
    """`texts` are pairs of a definition's id and what it means."""

    banner: str | None
    lines: tuple[DefinitionLine, ...]
    cross_check: tuple[CrossLine, ...]
    texts: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]


def definitions_table(record: Record) -> DefinitionsTable:
    """Of every row of a serving record; of one batch it is empty, and says why."""
    serving = [row for row in record.rows if row.expected.load is not None and row.expected.task is None]
    without = "One batch sends no requests" if record.heading.workload == "one-batch" else "A task is no load"
    remarks = [] if serving else [f"{without}: other tools' definitions do not apply."]
    if serving and not any(chunk.get("has_text") is not None for row in serving for chunk in _chunks(row)):
        remarks.append("The server sent token ids and no text: every chunk with tokens counts as visible for SGLang.")
    cross = tuple(line for row in serving for process in row.processes for line in _cross(row, process))
    if cross:
        remarks.append("SGLang's own tool asked the same server, after our loads and with prompts of its own.")
    failed = (why for row in serving for process in row.processes for why in failures(process.events))
    remarks += dict.fromkeys(f"The cross-check failed: {why}" for why in failed)
    remarks += lag_remarks(record) if serving else ()
    others = [(emulated_id(id_) if record.emulated else id_, one) for id_, one in OTHER_DEFINITIONS.items()]
    own = [definition_of(f"{metric}_median_s", row.expected) for row in serving[:1] for metric in METRICS]
    texts = [(one.id, f"Ours. {one.text} {one.formula}") for one in own]
    texts += [(id_, f"{one.text} {one.formula}") for id_, one in others]
    return DefinitionsTable(
        banner=EMULATED_BANNER if record.emulated else None,
        lines=tuple(line for row in serving for line in _lines(row)),
        cross_check=cross,
        texts=tuple(texts) if serving else (),
        remarks=tuple(remarks),
    )


def _lines(row: Row) -> Iterator[DefinitionLine]:
    yield DefinitionLine(row.name, OURS, {metric: _ours(row.figures[f"{metric}_median_s"]) for metric in METRICS})
    servers = [_as_tools(row, _requests(row, process)) for process in row.processes]
    for tool in TOOLS:
        times = {metric: _over_servers([server[tool][metric] for server in servers]) for metric in METRICS}
        yield DefinitionLine(row.name, tool, times)


def _ours(figure: RowFigure | Figure) -> Time:
    value = figure.median if isinstance(figure, RowFigure) else figure.value
    return Time(value, figure.definition, figure.reason)


def _requests(row: Row, process: Process) -> tuple[RequestTimeline, ...]:
    return requests(process.events, row.expected.load.name if row.expected.load else None)


def _as_tools(row: Row, asked: Sequence[RequestTimeline]) -> dict[str, dict[str, Time]]:
    """By tool and metric."""
    return {
        tool: {metric: _as_tool(row, asked, tool, metric, times[metric]) for metric in METRICS}
        for tool, times in medians_s(asked).items()
    }


def _as_tool(row: Row, asked: Sequence[RequestTimeline], tool: str, metric: str, value_s: float | None) -> Time:
    id_ = f"{metric}.as_{tool}/1"
    id_ = emulated_id(id_) if row.expected.emulated else id_
    if value_s is not None:
        return Time(value_s, id_)
    reason = "no request" if not asked else "no gap between chunks"
    for one in asked:
        figure: Figure = getattr(definitions(one)[tool], metric)
        if figure.reason:
            reason = f"request {one.id}: {figure.reason}"
            break
    return Time(None, id_, reason)


def _over_servers(times: Sequence[Time]) -> Time:
    if not times:
        return Time(None, "-", "no process ran")
    lacking = next((one for one in times if one.value_s is None), None)
    if lacking is not None:
        return lacking
    known = [one.value_s for one in times if one.value_s is not None]
    return Time(float(statistics.median(known)), times[0].definition)


def _cross(row: Row, process: Process) -> Iterator[CrossLine]:
    """For the row whose concurrency the tool had."""
    for event in named(process.events, "cross_check"):
        if row.concurrency is None or option(event, "--max-concurrency") != str(row.concurrency):
            continue
        asked = _requests(row, process)
        as_sglang = _as_tools(row, asked)["sglang"]
        for metric in (*METRICS, "e2e"):
            ours = _ours(process.figures[f"{metric}_median_s"])
            tool = _of_the_tool(event, "e2e_latency" if metric == "e2e" else metric)
            as_tool = as_sglang.get(metric, Time(None, "-", "no other definition of it is kept"))
            like = as_tool if as_tool.value_s is not None else ours
            difference = _difference_percent(tool.value_s, like.value_s)
            said = note(metric, difference, len(asked), event.get("requests"))
            yield CrossLine(row.name, process.index, metric, ours, as_tool, tool, difference, said)


def _difference_percent(value: float | None, to: float | None) -> float | None:
    return None if value is None or not to else 100 * (value / to - 1)


def _of_the_tool(event: Mapping[str, Any], metric: str) -> Time:
    name = f"median_{metric}_ms"
    source = f"{event.get('tool')} {event.get('version')} {name}"
    broken = why_broken(event)
    if broken is not None:
        return Time(None, source, broken)
    value = event["raw"].get(name)
    if not is_number(value) or value <= 0:
        return Time(None, source, f"its result has no {name}")
    return Time(value / 1000, source)


def _chunks(row: Row) -> Iterator[Mapping[str, Any]]:
    for process in row.processes:
        yield from named(process.events, "chunk")
