"""Does an observation say what its own looks say? Everything that can be derived again is, and compared. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from rvvbench.manifest.models import TargetKind
from rvvbench.observe.conclusion import SCHEMA, conclude
from rvvbench.observe.gate import waited_of
from rvvbench.observe.moment import conditions_of
from rvvbench.observe.peaks import peaks, until
from rvvbench.observe.stretch import Window, window_of

Observation = Mapping[str, Any]


def disagreements(
    observation: Observation, *, events: Sequence[Mapping[str, Any]] | None = None, load: str | None = None
) -> list[str]:
    """What differs between what is stored and what follows from the rest, a sentence each; none where all agrees.

    `observation` as `rvvbench/observation/1`. Where the process's `events` are given, its window is held against
    theirs too (`load`: the row's, None for one-batch). Whether target and governors are the record's is the caller's
    to see. Never raises: an observation that cannot be read is said to be so.
    """
    try:
        return [*_window(observation, events, load), *_conclusion(observation), *_peaks(observation)]
    except Exception as damage:  # whatever a damaged file can hold
        return [f"the observation is damaged ({type(damage).__name__}: {damage})"]


def _window(observation: Observation, events: Sequence[Mapping[str, Any]] | None, load: str | None) -> Iterator[str]:
    if observation["schema"] != SCHEMA:
        yield f"schema is {observation['schema']!r}, {SCHEMA} belongs"
    if events is not None:
        measured = window_of(events, load)
        if measured != _stored_window(observation):
            yield f"window is {observation['window']}, by the events {measured and list(measured)}"


def _conclusion(observation: Observation) -> Iterator[str]:
    target, gate = observation["target"], observation["gate"]
    if target not in get_args(TargetKind):
        yield f"target is {target!r}, one of {', '.join(get_args(TargetKind))} belongs"
        return
    derived = conclude(
        target,
        None if gate is None else waited_of(gate),
        conditions_of(observation["before"]),
        conditions_of(observation["after"]),
        observation["samples"],
        _stored_window(observation),
        observation["governors"],
    )
    for name, value in derived["figures"].items():
        if name not in observation["figures"] or observation["figures"][name] != value:
            yield f"figures.{name} is {observation['figures'].get(name, 'missing')}, derived {value}"
    for name in observation["figures"].keys() - derived["figures"].keys():
        yield f"figures.{name} is nothing that an observation derives"
    for name in ("reasons", "notes"):
        yield from (f"{name} lack {_said(one)}" for one in derived[name] if one not in observation[name])
        yield from (f"{name} hold {_said(one)}" for one in observation[name] if one not in derived[name])


def _peaks(observation: Observation) -> Iterator[str]:
    """Only some samples are kept, so a stored peak may lie above theirs, never below."""
    window, stored = _stored_window(observation), observation["peaks"]
    emulated = observation["target"] == "emulated"
    if stored["emulated"] is not emulated:
        yield f"peaks.emulated is {stored['emulated']}, on this target {emulated} belongs"
    for name, least in peaks(until(observation["samples"], None if window is None else window[1])).items():
        if stored[name] is None and name not in stored["reasons"]:
            yield f"peaks.{name} is null without a reason"
        if least is not None and (stored[name] is None or stored[name] < least):
            yield f"peaks.{name} is {stored[name]}, a sample shows {least}"


def _stored_window(observation: Observation) -> Window | None:
    match observation["window"]:
        case None:
            return None
        case [int(start_ns), int(end_ns)] if start_ns <= end_ns:
            return start_ns, end_ns
        case other:
            raise ValueError(f"window is {other!r}")


def _said(one: Any) -> str:
    return f"{one['id']}: {one['text']}" if isinstance(one, Mapping) and {"id", "text"} <= one.keys() else repr(one)
