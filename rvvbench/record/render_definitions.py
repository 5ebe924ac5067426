"""The table of definitions for a terminal, for Markdown and for machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from rvvbench.record.definitions_table import METRICS, CrossLine, DefinitionsTable, Time, definitions_table
from rvvbench.record.markdown import escaped, markdown_line
from rvvbench.record.schema import Record
from rvvbench.record.table_parts import significant

_HEAD = ("Row", "Definition", "TTFT s", "TPOT s", "ITL s")
_CROSS_HEAD = ("Row", "Metric", "Ours s", "As SGLang s", "SGLang's tool s", "Difference %", "What differs")
_TOOLS = {"ours": "ours", "sglang": "SGLang", "vllm": "vLLM", "guidellm": "guidellm", "mlperf": "MLPerf"}
_LEFT = {"Row", "Definition", "Metric", "What differs"}


def print_definitions(record: Record, console: Console) -> None:
    """Print it; texts are folded to the console's width."""
    table = definitions_table(record)
    if table.banner:
        console.print(Text.assemble(" ", (f" {table.banner} ", "bold black on yellow")))
    for title, head, lines in _grids(table):
        console.print(Text(f" {title}", style="bold"))
        rich = RichTable(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), header_style="bold")
        for name in head:
            rich.add_column(Text(name), justify="left" if name in _LEFT else "right", overflow="fold")
        for line in lines:
            rich.add_row(*(Text(cell) for cell in line))
        console.print(rich)
    below = RichTable.grid(padding=(0, 2))
    below.add_column(style="cyan", overflow="fold")
    below.add_column(overflow="fold")
    for id_, text in table.texts:
        below.add_row(Text(id_), Text(text))
    for remark in _remarks(table):
        below.add_row(Text("Note"), Text(remark))
    console.print(Padding(below, (0, 1), expand=False))


def definitions_markdown(record: Record) -> str:
    """In Markdown, ending in a newline."""
    table = definitions_table(record)
    text = [f"> **{escaped(table.banner)}**", ""] if table.banner else []
    for title, head, lines in _grids(table):
        text += [f"#### {escaped(title)}", "", markdown_line(head)]
        text.append(markdown_line(["---" if name in _LEFT else "--:" for name in head]))
        text += [markdown_line([escaped(cell) for cell in line]) for line in lines]
        text.append("")
    text += [f"- `{id_}`: {escaped(said)}" for id_, said in table.texts]
    text += [f"- {escaped(remark)}" for remark in _remarks(table)]
    return "\n".join(text) + "\n"


def definitions_plain(record: Record) -> dict[str, Any]:
    """As JSON data: exact medians in s with their definitions and reasons."""
    table = definitions_table(record)
    return {
        "lines": [
            {"row": line.row, "tool": line.tool, **{metric: _plain(line.times[metric]) for metric in METRICS}}
            for line in table.lines
        ],
        "cross_check": [
            {
                "row": line.row,
                "process": line.process,
                "metric": line.metric,
                "ours": _plain(line.ours),
                "as_sglang": _plain(line.as_tool),
                "tool": _plain(line.tool),
                "difference_percent": line.difference_percent,
                "note": line.note,
            }
            for line in table.cross_check
        ],
        "definitions": dict(table.texts),
        "remarks": list(table.remarks),
    }


def _grids(table: DefinitionsTable) -> list[tuple[str, Sequence[str], list[list[str]]]]:
    grids: list[tuple[str, Sequence[str], list[list[str]]]] = []
    if table.lines:
        lines = [
            [line.row, _TOOLS[line.tool], *(_shown(line.times[metric]) for metric in METRICS)] for line in table.lines
        ]
        grids.append(("The same requests under each tool's definitions", _HEAD, lines))
    if table.cross_check:
        several = any(line.process for line in table.cross_check)
        grids.append(
            (
                "The same server, asked by SGLang's own tool",
                _CROSS_HEAD,
                [_cross(x, several) for x in table.cross_check],
            )
        )
    return grids


def _cross(line: CrossLine, several: bool) -> list[str]:
    difference = "-" if line.difference_percent is None else f"{line.difference_percent:+.1f}"
    row = f"{line.row}, process {line.process}" if several else line.row
    times = (line.ours, line.as_tool, line.tool)
    return [row, line.metric.upper(), *(_shown(time) for time in times), difference, line.note]


def _shown(time: Time) -> str:
    return "-" if time.value_s is None else significant(time.value_s)


def _remarks(table: DefinitionsTable) -> list[str]:
    """The table's own, and why each null is one."""
    nulls = [
        f"{line.row}, {_TOOLS[line.tool]}, {metric.upper()}: {line.times[metric].reason}"
        for line in table.lines
        for metric in METRICS
        if line.times[metric].reason and (line.tool, metric) != ("mlperf", "itl")
    ]
    nulls += [
        f"{line.row}, process {line.process}, {line.metric.upper()} of the tool: {line.tool.reason}"
        for line in table.cross_check
        if line.tool.reason
    ]
    return [*table.remarks, *(f"{text}." for text in nulls)]


def _plain(time: Time) -> dict[str, Any]:
    return {"value": time.value_s, "unit": "s", "definition": time.definition, "reason": time.reason}
