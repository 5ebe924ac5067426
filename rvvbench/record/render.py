"""The comparison table for a terminal, for Markdown and for machines."""

from __future__ import annotations

import json
from typing import Any

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from rvvbench.record.markdown import escaped, markdown_line
from rvvbench.record.render_definitions import definitions_markdown, definitions_plain, print_definitions
from rvvbench.record.schema import Record
from rvvbench.record.table import comparison_table
from rvvbench.record.table_parts import Cell, Column, Line, Table

TABLE_SCHEMA = "rvvbench/table/1"
_TEXT_COLUMNS = {"variant", "cache", "tokens", "validity"}
_NAME_WIDTHS = {"variant": 16, "cache": 9}


def render_terminal(record: Record, console: Console, *, definitions: bool = False) -> None:
    """Print the table; where it is too wide for the console, with the figures down and the rows across.

    With `definitions` (here and below) also the table of other tools' definitions.
    """
    table = comparison_table(record)
    _print_heading(table, console)
    fitting = next((wide for wide in (_across(table), _across(table, close=True)) if _fits(wide, console)), None)
    for part in [fitting] if fitting is not None else _down(table, console):
        console.print(part)
    _print_failures(table, console)
    _print_below(table, console)
    if definitions:
        print_definitions(record, console)


def render_markdown(record: Record, *, definitions: bool = False) -> str:
    """The table in Markdown (GitHub's dialect), ending in a newline."""
    table = comparison_table(record)
    lines = [f"### {escaped(table.experiment)}: {escaped(table.title)}", ""]
    for banner in (table.banner, table.relocked):
        if banner:
            lines += [f"> **{escaped(banner)}**", ""]
    lines += [f"- {name}: {escaped(text)}" for name, text in table.facts]
    lines += ["", markdown_line([_titled(column) for column in table.columns])]
    lines.append(markdown_line(["---" if column.key in _TEXT_COLUMNS else "--:" for column in table.columns]))
    lines += [markdown_line([escaped(_with_spread(cell)) for cell in line.cells]) for line in table.lines]
    lines.append("")
    for failure in table.failures:
        lines += [f"**{escaped(failure.rows)}: INVALID**", ""]
        lines += [f"- {escaped(reason)}" for reason in failure.reasons]
        lines.append("")
    for disturbance in table.disturbances:
        lines += [f"> **{escaped(disturbance)}**", ""]
    lines += [f"- {escaped(answer)}" for answer in table.answers]
    lines += [""] if table.answers else []
    lines += [f"{number}. {escaped(note)}" for number, note in enumerate(table.notes, start=1)]
    lines += [""] if table.notes else []
    lines += [f"- {escaped(remark)}" for remark in table.remarks]
    lines += [f"- Replay: `{table.replay}`", "", "Columns:", ""]
    lines += [f"- {column.title}{_id(column, '`')}: {escaped(_short(column))}" for column in _defined(table)]
    return "\n".join(lines) + "\n" + (f"\n{definitions_markdown(record)}" if definitions else "")


def render_json(record: Record, *, definitions: bool = False) -> str:
    """The table as one JSON document (`rvvbench/table/1`): exact figures with unit, definition, extremes and reason."""
    table = comparison_table(record)
    plain = {
        "schema": TABLE_SCHEMA,
        "run_id": table.run_id,
        "experiment": table.experiment,
        "title": table.title,
        "created": record.created,
        "identity": record.identity,
        "target": record.target.kind,
        "emulated": record.emulated,
        "valid": record.valid,
        "heading": record.heading.model_dump(mode="json"),
        "image": record.image.model_dump(mode="json"),
        "columns": [_plain_column(column) for column in table.columns],
        "rows": [_plain_line(table, line) for line in table.lines],
        "agreement": record.agreement.model_dump(mode="json"),
        "disturbances": list(table.disturbances),
        **({"answers": list(table.answers)} if table.answers else {}),
        "remarks": list(table.remarks),
        "replay": table.replay,
        **({"definitions": definitions_plain(record)} if definitions else {}),
    }
    return json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _print_heading(table: Table, console: Console) -> None:
    console.print()
    console.print(Text.assemble(" ", (table.experiment, "bold"), "  ", (table.title, "dim")))
    if table.banner:
        console.print(Text.assemble(" ", (f" {table.banner} ", "bold black on yellow")))
    if table.relocked:
        console.print(Padding(Text(table.relocked, style="bold yellow"), (0, 1), expand=False))
    facts = RichTable.grid(padding=(0, 2))
    facts.add_column(style="cyan", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in table.facts:
        facts.add_row(Text(name), Text(text))
    console.print(Padding(facts, (0, 1), expand=False))


def _fits(wide: RichTable, console: Console) -> bool:
    # Measured without a limit: a measure is otherwise cut to the console's width and always seems to fit.
    return Measurement.get(console, console.options.update(max_width=10_000), wide).maximum <= console.width


def _across(table: Table, *, close: bool = False) -> RichTable:
    """A line for each row of the record; `close`: with one space between columns instead of two."""
    rich = RichTable(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 0 if close else 1), header_style="bold")
    for column in table.columns:
        first, _, last = column.title.rpartition(" ")
        title = Text(f"{first}\n{last}" if first else last)
        if column.unit:
            title.append(f"{' ' if first else chr(10)}{column.unit}", style="not bold dim")
        rich.add_column(title, justify="left" if column.key in _TEXT_COLUMNS else "right", no_wrap=True)
    for line in table.lines:
        cells = [_text(cell, column, line) for cell, column in zip(line.cells, table.columns, strict=True)]
        rich.add_row(*cells)
    return rich


def _hyphen_broken(name: str, width: int) -> str:
    """`name` in lines of at most `width` characters where its hyphens allow it."""
    lines = [""]
    for part in name.replace("-", "-\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _down(table: Table, console: Console) -> list[RichTable]:
    """A line for each column of the table, and as many rows of the record side by side as fit into the console."""
    label_width = max(len(_titled(column)) for column in table.columns)
    cell_width = max(
        max(len(part) for part in _text(cell, column, line, beside=True).plain.split("\n"))
        for line in table.lines
        for cell, column in zip(line.cells, table.columns, strict=True)
    )
    fitting = max(1, (console.width - label_width - 4) // (cell_width + 3))
    parts = []
    for start in range(0, len(table.lines), fitting):
        lines = table.lines[start : start + fitting]
        part = RichTable(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1))
        part.add_column(Text(_titled(table.columns[0])), style="cyan", no_wrap=True)
        for line in lines:
            part.add_column(_text(line.cells[0], table.columns[0], line), justify="right", overflow="fold")
        for index, column in enumerate(table.columns[1:], start=1):
            label = Text(column.title)
            if column.unit:
                label.append(f" {column.unit}", style="dim")
            part.add_row(label, *(_text(line.cells[index], column, line, beside=True) for line in lines))
        parts.append(part)
    return parts


def _text(cell: Cell, column: Column, line: Line, *, beside: bool = False) -> Text:
    """The cell as shown; figures of an invalid row are dim, for they prove nothing."""
    style = ""
    if column.key == "validity":
        style = "bold red" if line.reasons else "green"
    elif column.key == "tokens" and cell.value == "differ":
        style = "bold red"
    elif column.key == "variant":
        style = "bold"
    elif line.reasons or cell.value is None:
        style = "dim"
    text = Text(_hyphen_broken(cell.text, _NAME_WIDTHS.get(column.key, 100)), style=style)
    if cell.spread:
        text.append(f" ({cell.spread})" if beside else f"\n{cell.spread}", style="dim")
    return text


def _print_failures(table: Table, console: Console) -> None:
    for failure in table.failures:
        console.print(Text.assemble(" ", (failure.rows, "bold"), ": ", ("INVALID", "bold red")))
        for reason in failure.reasons:
            console.print(Padding(Text(f"- {reason}", style="red"), (0, 1, 0, 3), expand=False))
        console.print()


def _print_below(table: Table, console: Console) -> None:
    below = RichTable.grid(padding=(0, 2))
    below.add_column(style="cyan", no_wrap=True)
    below.add_column(overflow="fold")
    for disturbance in table.disturbances:
        below.add_row(Text("Caution", style="bold yellow"), Text(disturbance, style="bold yellow"))
    for index, answer in enumerate(table.answers):
        below.add_row(Text("" if index else "Answer"), Text(answer, style="bold"))
    for number, note in enumerate(table.notes, start=1):
        below.add_row(Text(f"[{number}]"), Text(note))
    for index, remark in enumerate(table.remarks):
        below.add_row(Text("" if index else "Notes"), Text(remark))
    for index, column in enumerate(_defined(table)):
        said = Text.assemble(f"{column.title}: {_short(column)}", (_id(column), "dim"))
        below.add_row(Text("" if index else "Defined"), said)
    below.add_row(Text("Replay"), Text(table.replay))
    console.print(Padding(below, (0, 1), expand=False))
    console.print()


def _defined(table: Table) -> list[Column]:
    return [column for column in table.columns if column.text or column.definition]


def _short(column: Column) -> str:
    """The first sentence of what the column means; the JSON form has all of them."""
    return (column.text or "of another version").partition(". ")[0].rstrip(".") + "."


def _id(column: Column, quote: str = "") -> str:
    return f" {quote}{column.definition}{quote}" if column.definition else ""


def _titled(column: Column) -> str:
    return f"{column.title} {column.unit}" if column.unit else column.title


def _with_spread(cell: Cell) -> str:
    return f"{cell.text} ({cell.spread})" if cell.spread else cell.text


def _plain_column(column: Column) -> dict[str, Any]:
    # Only shown texts are scaled; the values of this document are the record's own.
    unit = "bytes" if column.unit in ("MiB", "GiB") else column.unit
    return {
        "key": column.key,
        "title": column.title,
        "unit": unit,
        "definition": column.definition,
        "text": column.text,
    }


def _plain_line(table: Table, line: Line) -> dict[str, Any]:
    cells = {column.key: _plain_cell(cell) for column, cell in zip(table.columns, line.cells, strict=True)}
    plain = {
        "name": line.name,
        "valid": not line.reasons,
        "reasons": list(line.reasons),
        "disturbed": line.disturbed,
        "cells": cells,
    }
    if line.figures is not None:
        plain["figures"] = {name: figure.model_dump(mode="json") for name, figure in line.figures.items()}
    return plain


def _plain_cell(cell: Cell) -> dict[str, Any]:
    return {"value": cell.value, "min": cell.min, "max": cell.max, "n": cell.n, "reason": cell.reason}
