"""A table as data: its columns, cells and lines, and how a number is written in one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from rvvbench.record.failure import Failure
from rvvbench.record.schema import RowFigure

MIB = 1024.0**2
GIB = 1024.0**3


def significant(value: float, digits: int = 3) -> str:
    """`value` in decimal, with at least `digits` significant digits and every digit before the point: 2 -> "2.00"."""
    if value == 0:
        return "0"
    # Rounded first: 0.9996 has its first digit before the point once it is rounded to three digits.
    magnitude = math.floor(math.log10(abs(float(f"{value:.{digits - 1}e}"))))
    return f"{value:.{max(0, digits - 1 - magnitude)}f}"


@dataclass(frozen=True)
class Column:
    """`unit` and `definition` (an id) are null for columns without figures; `text` says what a figure means."""

    key: str
    title: str
    unit: str | None = None
    definition: str | None = None
    text: str | None = None


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
    """One row of the record; `reasons` are empty exactly when it is valid. `figures` are all that it has, where the
    columns show only some. `disturbed`: the machine was, while it was measured, and that made it invalid or not.
    """

    name: str
    cells: tuple[Cell, ...]
    reasons: tuple[str, ...]
    figures: Mapping[str, RowFigure] | None = None
    disturbed: bool = False


@dataclass(frozen=True)
class Table:
    """`facts` are pairs of name and text to show above, `answers` what the table was made to tell, `notes` what cells
    cite by number, `remarks` the rest. `failures` say why rows are not valid; `disturbances` what was the matter with
    the machine while valid ones were measured.
    """

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
    answers: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    disturbances: tuple[str, ...] = ()


@dataclass
class Notes:
    """Numbers each different text once, in the order of first use."""

    texts: list[str] = field(default_factory=list)

    def cite(self, text: str) -> str:
        """The cell's text for a null that `text` explains."""
        if text not in self.texts:
            self.texts.append(text)
        return f"n/a [{self.texts.index(text) + 1}]"
