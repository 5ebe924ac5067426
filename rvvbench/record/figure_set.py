"""Which figures a row has: those of one batch, of a server's load, or of a task."""

from __future__ import annotations

from collections.abc import Mapping

from rvvbench.record import metrics
from rvvbench.record.compile_figure import COMPILE, COMPILE_DEFINITIONS, compile_figure
from rvvbench.record.metrics import Definition, figure
from rvvbench.record.request_timeline import requests
from rvvbench.record.schema import Expected, Figure
from rvvbench.record.server_figures import SERVER_DEFINITIONS, SERVER_FIGURES, Beneath
from rvvbench.record.serving import LOAD_FIGURES, LOAD_NAMES, SERVING_DEFINITIONS, derive_load
from rvvbench.record.task_figures import ANSWER_FIGURES, TASK_DEFINITIONS, TASK_NAMES, derive_task
from rvvbench.record.timeline import Events

SERVING_NAMES: tuple[str, ...] = (*LOAD_NAMES, *(native.name for native, _ in SERVER_FIGURES))
"""The keys of the figures of a serving row."""

ALL_DEFINITIONS: Mapping[str, Definition] = {
    **metrics.DEFINITIONS,
    **SERVING_DEFINITIONS,
    **SERVER_DEFINITIONS,
    **TASK_DEFINITIONS,
    **COMPILE_DEFINITIONS,
}
"""Every definition that a row's figure can have, by id."""


def names(expected: Expected) -> tuple[str, ...]:
    """The keys of the figures of a row that expects this."""
    if expected.task is not None:
        return TASK_NAMES
    found = metrics.NAMES if expected.load is None else SERVING_NAMES
    return (*found, COMPILE.name) if expected.compiles else found


def definition_of(name: str, expected: Expected) -> Definition:
    """The definition that the figure `name` has in such a row. Raises KeyError for an unknown name."""
    if name == COMPILE.name:
        return metrics.twin(COMPILE) if expected.emulated else COMPILE
    if expected.load is None:
        return metrics.definition_of(name, emulated=expected.emulated)
    for answered, _ in ANSWER_FIGURES if expected.task is not None else ():
        if answered.name == name:
            return answered
    for native, _ in (*LOAD_FIGURES, *SERVER_FIGURES):
        if native.name == name:
            return ALL_DEFINITIONS[metrics.emulated_id(native.id)] if expected.emulated else native
    raise KeyError(name)


def derive(events: Events, expected: Expected) -> dict[str, Figure]:
    """Every figure that one process gives to such a row. What the events do not hold is null with the reason."""
    found = _derive(events, expected)
    if expected.compiles:
        found[COMPILE.name] = compile_figure(events, emulated=expected.emulated)
    return found


def _derive(events: Events, expected: Expected) -> dict[str, Figure]:
    if expected.load is None:
        return metrics.derive_process(events, emulated=expected.emulated)
    if expected.task is not None:
        return derive_task(events, expected)
    beneath = Beneath(events, expected)
    return {
        **derive_load(requests(events, expected.load.name), emulated=expected.emulated),
        **{native.name: figure(native, expected.emulated, of, beneath) for native, of in SERVER_FIGURES},
    }
