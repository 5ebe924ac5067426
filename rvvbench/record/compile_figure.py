"""What is left of compiling, cold or warm, in a process that compiles."""

from __future__ import annotations

from collections.abc import Mapping

from rvvbench.record.metrics import Definition, figure, twin
from rvvbench.record.schema import Figure
from rvvbench.record.timeline import Events, number, only

COMPILE = Definition(
    "compile.first_calls/1",
    "compile_s",
    "s",
    "Compile",
    "First calls of all compiled graphs together: compiling them, or taking them from the cache. They come before what "
    "is measured, in a warm-up or, of a server, before it is ready.",
    "compiled.compile_seconds",
)

COMPILE_DEFINITIONS: Mapping[str, Definition] = {one.id: one for one in (COMPILE, twin(COMPILE))}
"""By id."""


def compile_figure(events: Events, *, emulated: bool) -> Figure:
    """The figure of one process."""
    return figure(COMPILE, emulated, _compile_s, events)


def _compile_s(events: Events) -> float:
    return number(only(events, "compiled"), "compile_seconds", "compiled")
