"""What each figure means, and how it is derived from the events of one process.

Ids are versioned: a changed meaning is a new version, so that a number never changes its meaning behind its id. Each
definition has a twin for emulation (`..._emulated/N`): the emulator's time and memory are not a board's and must not
share a column with them. Times are CLOCK_MONOTONIC nanoseconds in the events; an output token's time is the end of
the pass that made it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

from rvvbench.record.schema import Figure
from rvvbench.record.timeline import (
    NS_PER_S,
    Events,
    NotMeasuredError,
    input_tokens,
    largest_reading,
    largest_tree_rss,
    number,
    only,
    passes,
    prefill_pass,
    several_passes,
)

T = TypeVar("T")


@dataclass(frozen=True)
class Definition:
    """`name` is the key of the figure in a record; `id` says which definition of it."""

    id: str
    name: str
    unit: str
    title: str
    text: str
    formula: str
    emulated: bool = False


def _prefill_s(events: Events) -> float:
    return prefill_pass(events).seconds


def _prefill_rate(events: Events) -> float:
    return input_tokens(events) / prefill_pass(events).seconds


def _decode_rate(events: Events) -> float:
    tokens = several_passes(events)
    return (len(tokens) - 1) * NS_PER_S / (tokens[-1].end_ns - tokens[0].end_ns)


def _decode_step_s(events: Events) -> float:
    return float(statistics.median(step.seconds for step in several_passes(events)[1:]))


def _gaps_s(events: Events) -> list[float]:
    return [(later.end_ns - earlier.end_ns) / NS_PER_S for earlier, later in pairwise(several_passes(events))]


def _itl_median_s(events: Events) -> float:
    return float(statistics.median(_gaps_s(events)))


def _itl_max_s(events: Events) -> float:
    return max(_gaps_s(events))


def _wall_s(events: Events) -> float:
    every = passes(events)
    return (every[-1].end_ns - every[0].start_ns) / NS_PER_S


def _throughput_total(events: Events) -> float:
    token_ids = only(events, "prefill").get("token_ids")
    if not isinstance(token_ids, list) or not token_ids:
        raise NotMeasuredError("the prefill event has no token_ids, so the batch size is unknown")
    return (input_tokens(events) + len(token_ids) * len(passes(events))) / _wall_s(events)


def _load_s(events: Events) -> float:
    return number(only(events, "model_loaded"), "seconds", "model_loaded")


def _warmup_s(events: Events) -> float:
    return number(only(events, "warmup"), "seconds", "warmup")


def _vm_hwm_bytes(events: Events) -> float:
    return largest_reading(events, "vm_hwm_bytes")


def _pss_bytes(events: Events) -> float:
    return largest_reading(events, "pss_bytes")


_FIGURES: tuple[tuple[Definition, Callable[[Events], float]], ...] = (
    (
        Definition(
            "prefill.one_pass/1",
            "prefill_s",
            "s",
            "Prefill",
            "Time of the one forward pass over all input tokens of the batch, sampling of the first token included.",
            "prefill.end - prefill.start",
        ),
        _prefill_s,
    ),
    (
        Definition(
            "ttft.one_batch/1",
            "ttft_s",
            "s",
            "TTFT",
            "Time to first token of a one-batch run: one forward pass, from the start of the prefill to its end. "
            "No request, no queue, no HTTP: not the TTFT of a server.",
            "prefill.end - prefill.start",
        ),
        _prefill_s,
    ),
    (
        Definition(
            "prefill_rate/1",
            "prefill_rate_tokens_per_s",
            "tok/s",
            "Prefill rate",
            "Input tokens of the whole batch over the time of the prefill.",
            "input_tokens / (prefill.end - prefill.start)",
        ),
        _prefill_rate,
    ),
    (
        Definition(
            "decode_rate.tokens_after_first/1",
            "decode_rate_tokens_per_s",
            "tok/s",
            "Decode rate",
            "Tokens per second of one sequence after its first token: n tokens have n - 1 intervals.",
            "(n - 1) / (t_n - t_1), t_i the end of the pass that made token i",
        ),
        _decode_rate,
    ),
    (
        Definition(
            "decode_step.median/1",
            "decode_step_s",
            "s",
            "Decode step",
            "Median time of a decode step's forward pass, without what happens between passes.",
            "median(decode_i.end - decode_i.start)",
        ),
        _decode_step_s,
    ),
    (
        Definition(
            "itl.median/1",
            "itl_median_s",
            "s",
            "ITL",
            "Median inter-token latency: between the times of neighbouring tokens, with what happens between passes.",
            "median(t_(i+1) - t_i)",
        ),
        _itl_median_s,
    ),
    (
        Definition("itl.max/1", "itl_max_s", "s", "ITL max", "Largest inter-token latency.", "max(t_(i+1) - t_i)"),
        _itl_max_s,
    ),
    (
        Definition(
            "wall.first_pass_to_last_token/1",
            "wall_s",
            "s",
            "Wall",
            "From the start of the prefill to the last token. Load and warm-up are before it.",
            "t_n - prefill.start",
        ),
        _wall_s,
    ),
    (
        Definition(
            "throughput.total/1",
            "throughput_total_tokens_per_s",
            "tok/s",
            "Total throughput",
            "Input and output tokens of the whole batch over the wall time.",
            "(input_tokens + batch * n) / (t_n - prefill.start)",
        ),
        _throughput_total,
    ),
    (
        Definition(
            "load.model/1",
            "load_s",
            "s",
            "Load",
            "Time to load the model, as the runner reports it.",
            "model_loaded.seconds",
        ),
        _load_s,
    ),
    (
        Definition(
            "warmup.full_shape/1",
            "warmup_s",
            "s",
            "Warm-up",
            "Prefill and every decode step of the warm-up, which has the measured shape and other tokens.",
            "warmup.seconds",
        ),
        _warmup_s,
    ),
    (
        Definition(
            "peak_rss.vm_hwm/1",
            "peak_rss_bytes",
            "bytes",
            "Peak RSS",
            "Largest VmHWM (the kernel's own peak of resident memory since the process started) that was read of one "
            "measured process; file pages that are mapped count. The supervisor is not in it, nor what came after the "
            "last reading.",
            "max over readings of VmHWM",
        ),
        _vm_hwm_bytes,
    ),
    (
        Definition(
            "peak_rss.tree_sampled/1",
            "peak_rss_tree_bytes",
            "bytes",
            "Peak tree RSS",
            "Largest sampled sum of RSS over the process tree: a page that two processes share counts twice, a peak "
            "between two samples is missed.",
            "max over samples of sum(RSS)",
        ),
        largest_tree_rss,
    ),
    (
        Definition(
            "pss.max_at_phases/1",
            "pss_bytes",
            "bytes",
            "PSS",
            "Largest PSS (a page shared by k processes counts 1/k) that was read of one measured process at the ends "
            "of its phases; not a peak.",
            "max over readings of PSS",
        ),
        _pss_bytes,
    ),
)

_TIME_NOTE = " Under emulation: the time of the emulator on the machine that ran it, not board timing."
_MEMORY_NOTE = " Under emulation: the emulator's own memory is in it."


def emulated_id(definition_id: str) -> str:
    """The twin's id: `peak_rss.vm_hwm/1` -> `peak_rss.vm_hwm_emulated/1`."""
    name, _, version = definition_id.rpartition("/")
    return f"{name}_emulated/{version}"


def twin(definition: Definition) -> Definition:
    """The definition that the figure has on an emulated target."""
    note = _MEMORY_NOTE if definition.unit == "bytes" else _TIME_NOTE
    return replace(definition, id=emulated_id(definition.id), text=definition.text + note, emulated=True)


DEFINITIONS: Mapping[str, Definition] = {
    definition.id: definition for native, _ in _FIGURES for definition in (native, twin(native))
}
"""Every definition by id."""

NAMES: tuple[str, ...] = tuple(native.name for native, _ in _FIGURES)
"""The keys of a process's figures, in the order of the table above."""


def definition_of(name: str, *, emulated: bool) -> Definition:
    """The definition that the figure `name` has on an emulated target, or on a native one.

    Raises: KeyError for an unknown name.
    """
    for native, _ in _FIGURES:
        if native.name == name:
            return twin(native) if emulated else native
    raise KeyError(name)


def derive_process(events: Events, *, emulated: bool) -> dict[str, Figure]:
    """Every figure of one process from its events. What they do not hold is null with the reason."""
    return {native.name: figure(native, emulated, derive, events) for native, derive in _FIGURES}


def figure(native: Definition, emulated: bool, derive: Callable[[T], float], of: T) -> Figure:
    """The figure that `derive` finds in `of`, or its reason, under the definition of the target."""
    id_ = emulated_id(native.id) if emulated else native.id
    try:
        return Figure(value=derive(of), unit=native.unit, definition=id_)
    except NotMeasuredError as error:
        return Figure(value=None, unit=native.unit, definition=id_, reason=str(error))
