"""Figures from exact timelines: 8 tokens at 3.0, 3.5 ... 6.5 s."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.record.metrics import DEFINITIONS, NAMES, definition_of, derive_process, emulated_id
from rvvbench.record.schema import Figure

from . import sample


def figures(events: list[sample.Event], *, emulated: bool = False) -> dict[str, Figure]:
    return derive_process(events, emulated=emulated)


def without(name: str) -> list[sample.Event]:
    return [event for event in sample.events() if event["event"] != name]


def changed(name: str, nth: int = 0, **fields: Any) -> list[sample.Event]:
    events = sample.events()
    [event for event in events if event["event"] == name][nth].update(fields)
    return events


def test_eight_tokens_half_a_second_apart_decode_at_exactly_two_tokens_a_second() -> None:
    assert figures(sample.events())["decode_rate_tokens_per_s"].value == 2.0


@pytest.mark.parametrize(
    ("name", "value", "unit"),
    [
        ("prefill_s", 3.0, "s"),
        ("ttft_s", 3.0, "s"),
        ("prefill_rate_tokens_per_s", 64 / 3.0, "tok/s"),
        ("decode_step_s", 0.5, "s"),
        ("itl_median_s", 0.5, "s"),
        ("itl_max_s", 0.5, "s"),
        ("wall_s", 6.5, "s"),
        ("throughput_total_tokens_per_s", 72 / 6.5, "tok/s"),
        ("load_s", 2.5, "s"),
        ("warmup_s", 6.75, "s"),
        ("peak_rss_bytes", 700 * sample.MIB, "bytes"),
        ("peak_rss_tree_bytes", 750 * sample.MIB, "bytes"),
        ("pss_bytes", 698 * sample.MIB, "bytes"),
    ],
)
def test_each_figure_of_the_sample_is_exact(name: str, value: float, unit: str) -> None:
    figure = figures(sample.events())[name]
    assert (figure.value, figure.unit, figure.reason) == (value, unit, None)


def test_throughput_counts_every_sequence_and_decode_rate_counts_one() -> None:
    found = figures(sample.events(expects=sample.expected(batch_size=3)))
    assert found["throughput_total_tokens_per_s"].value == 3 * 72 / 6.5
    assert found["decode_rate_tokens_per_s"].value == 2.0


def test_time_between_passes_is_in_itl_and_not_in_the_decode_step() -> None:
    events = sample.events()
    for event in events:
        if event["event"] == "decode":
            event["start_ns"] += 100_000_000
    found = figures(events)
    assert (found["decode_step_s"].value, found["itl_median_s"].value) == (0.4, 0.5)


def test_the_prefill_is_no_decode_step() -> None:
    assert figures(sample.events(tokens=(11, 12)))["decode_step_s"].value == 0.5


def test_a_number_too_large_for_any_clock_is_no_number() -> None:
    assert figures(changed("warmup", seconds=10**400))["warmup_s"].reason == "a warmup event has no seconds"


def test_one_output_token_has_no_decode_rate_and_says_why() -> None:
    found = figures(sample.events(tokens=(11,)))
    for name in ("decode_rate_tokens_per_s", "decode_step_s", "itl_median_s", "itl_max_s"):
        assert found[name].value is None
        assert found[name].reason == "one output token: there is no interval between tokens"
    assert found["ttft_s"].value == 3.0
    assert found["throughput_total_tokens_per_s"].value == 65 / 3.0


def test_no_events_at_all_are_figures_that_are_all_null_with_reasons() -> None:
    found = figures([])
    assert list(found) == list(NAMES)
    assert all(figure.value is None and figure.reason for figure in found.values())


@pytest.mark.parametrize(
    ("missing", "names"),
    [
        ("prefill", ["prefill_s", "ttft_s", "decode_rate_tokens_per_s", "throughput_total_tokens_per_s"]),
        ("measured_end", ["decode_rate_tokens_per_s", "wall_s", "throughput_total_tokens_per_s"]),
        ("model_loaded", ["load_s"]),
        ("warmup", ["warmup_s"]),
        ("memory", ["peak_rss_bytes", "pss_bytes"]),
        ("memory_tree", ["peak_rss_tree_bytes"]),
    ],
)
def test_a_missing_event_makes_its_figures_null_and_names_it(missing: str, names: list[str]) -> None:
    found = figures(without(missing))
    for name in names:
        assert found[name].value is None, name
        assert found[name].reason, name
    whole = figures(sample.events())
    assert {name for name in NAMES if found[name] != whole[name]} >= set(names)


def test_a_killed_process_still_has_its_prefill_time() -> None:
    events = sample.events()
    cut = next(index for index, event in enumerate(events) if event.get("step") == 4)
    found = figures(events[:cut])
    assert found["prefill_s"].value == 3.0
    assert found["decode_rate_tokens_per_s"].reason == "no measured_end event"


def test_a_lost_decode_step_is_no_decode_rate() -> None:
    events = [event for event in sample.events() if event.get("step") != 4]
    assert (
        figures(events)["decode_rate_tokens_per_s"].reason
        == "the decode steps are not 1, 2, ... in order: 1, 2, 3, 5, 6, 7"
    )


def test_a_doubled_prefill_is_no_time() -> None:
    events = sample.events()
    events.append(next(event for event in events if event["event"] == "prefill"))
    assert figures(events)["prefill_s"].reason == "2 prefill events where one belongs"


@pytest.mark.parametrize(
    "fields",
    [
        {"start_ns": None},
        {"end_ns": "3000000000"},
        {"end_ns": True},
        {"start_ns": -1},
        {"end_ns": 2**70},
        {"end_ns": 0},
        {"start_ns": 3_000_000_000},
    ],
)
def test_times_that_are_no_times_are_null_with_a_reason(fields: dict[str, Any]) -> None:
    figure = figures(changed("prefill", **fields))["prefill_s"]
    assert figure.value is None
    assert figure.reason


def test_passes_that_overlap_are_no_timeline() -> None:
    found = figures(changed("decode", 2, start_ns=3_900_000_000))
    assert found["decode_rate_tokens_per_s"].reason == "decode step 3 starts before the pass before it ended"


def readings(**fields: Any) -> list[sample.Event]:
    """The sample with the same fields in every memory event."""
    return [{**event, **fields} if event["event"] == "memory" else event for event in sample.events()]


def test_memory_that_was_never_read_is_null_with_the_events_own_reason() -> None:
    found = figures(readings(pss_bytes=None, reason="smaps_rollup: permission denied"))
    assert found["pss_bytes"].reason == "smaps_rollup: permission denied"
    assert found["peak_rss_bytes"].value == 700 * sample.MIB


def test_a_process_killed_before_it_could_tell_has_the_peak_that_was_sampled_from_outside() -> None:
    events = [event for event in sample.events() if event.get("phase") not in ("loaded", "measured")]
    found = figures(events)
    assert found["peak_rss_bytes"].value == 697 * sample.MIB
    assert found["pss_bytes"].reason == "sampled from outside, without PSS"


def test_a_process_too_short_to_be_sampled_has_the_peak_that_it_told_itself() -> None:
    events = changed("memory", 2, vm_hwm_bytes=None, reason="ended before the first sample")
    assert figures(events)["peak_rss_bytes"].value == 700 * sample.MIB


def test_zero_memory_is_not_measured_memory() -> None:
    assert figures(readings(vm_hwm_bytes=0))["peak_rss_bytes"].value is None


def test_the_supervisors_memory_is_not_the_measured_process() -> None:
    supervisor = {"event": "memory", "role": "supervisor", "vm_hwm_bytes": 10**12, "pss_bytes": 10**12}
    found = figures([*sample.events(), supervisor])
    assert (found["peak_rss_bytes"].value, found["pss_bytes"].value) == (700 * sample.MIB, 698 * sample.MIB)


def test_the_largest_of_several_measured_processes_is_the_peak_not_their_sum() -> None:
    other = {**next(event for event in sample.events() if event.get("phase") == "measured"), "pid": 7}
    events = [*sample.events(), {**other, "vm_hwm_bytes": 300 * sample.MIB}]
    assert figures(events)["peak_rss_bytes"].value == 700 * sample.MIB


def test_an_emulated_figure_never_has_the_definition_of_a_native_one() -> None:
    native, emulated = figures(sample.events()), figures(sample.events(), emulated=True)
    for name in NAMES:
        assert emulated[name].value == native[name].value
        assert emulated[name].definition == emulated_id(native[name].definition) != native[name].definition


def test_every_figure_is_defined_once_with_unit_text_and_formula() -> None:
    assert len(set(NAMES)) == len(NAMES)
    assert len(DEFINITIONS) == 2 * len(NAMES)
    for name in NAMES:
        for emulated in (False, True):
            definition = definition_of(name, emulated=emulated)
            assert DEFINITIONS[definition.id] == definition
            assert re.fullmatch(r"[a-z0-9_.]+/[0-9]+", definition.id)
            assert definition.unit and definition.text.endswith(".") and definition.formula
    with pytest.raises(KeyError):
        definition_of("made_up", emulated=False)


@given(
    prefill_ns=st.integers(1, 10**12),
    steps_ns=st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 10**11)), min_size=1, max_size=30),
)
def test_decode_rate_times_decode_time_is_the_number_of_intervals(
    prefill_ns: int, steps_ns: list[tuple[int, int]]
) -> None:
    now = prefill_ns
    events: list[dict[str, Any]] = [
        {"event": "prefill", "start_ns": 0, "end_ns": now, "input_tokens": 5, "token_ids": [1]}
    ]
    for step, (gap, length) in enumerate(steps_ns, start=1):
        events.append({"event": "decode", "step": step, "start_ns": now + gap, "end_ns": now + gap + length})
        now += gap + length
    found = figures([*events, {"event": "measured_end"}])
    rate, wall = found["decode_rate_tokens_per_s"].value, found["wall_s"].value
    assert rate is not None and wall is not None
    assert rate * (now - prefill_ns) / 1e9 == pytest.approx(len(steps_ns))
    assert wall == now / 1e9


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
EVENT_NAMES = ["prefill", "decode", "measured_end", "memory", "memory_tree", "model_loaded", "warmup"]
FIELDS = ["step", "start_ns", "end_ns", "input_tokens", "token_ids", "seconds", "vm_hwm_bytes", "rss_sum_bytes", "role"]


@given(
    st.lists(
        st.builds(
            lambda name, fields: {**fields, "event": name},
            st.sampled_from(EVENT_NAMES),
            st.dictionaries(st.sampled_from(FIELDS), json_values),
        ),
        max_size=6,
    )
)
def test_whatever_stands_in_the_events_every_figure_is_a_number_or_has_a_reason(events: list[dict[str, Any]]) -> None:
    for figure in figures(events).values():
        assert (figure.value is None) == bool(figure.reason)
        assert figure.value is None or figure.value > 0
