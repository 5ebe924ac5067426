from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_run import quiet

from rvvbench.observe.conclusion import EMULATOR, SCHEMA, conclude
from rvvbench.observe.finding import Finding
from rvvbench.observe.gate import Waited
from rvvbench.observe.peaks import peaks_until
from rvvbench.observe.rederive import disagreements

WINDOW = (2_500_000_000, 7_500_000_000)
EVENTS = [{"event": "measured_start", "t_ns": WINDOW[0]}, {"event": "measured_end", "t_ns": WINDOW[1]}]


def observed(target: Any = "board") -> dict[str, Any]:
    """What is stored of a run that was disturbed, and began on a machine that was not ready."""
    before, after, samples = quiet()
    waited = Waited(120.0, 121, (), (Finding("load", "1.00 CPUs were at work"),), ("not observed: governors",))
    for at, one in enumerate(samples):
        one["cpu"]["busy_s"] += 0.5 * at
        one |= {"rss_sum_bytes": 1000 + at, "processes": [], "cgroup": None}
    samples[0]["reasons"] = {"cgroup": "no controller"}
    stored = {
        "schema": SCHEMA,
        "target": target,
        "gate": waited.plain(),
        "before": before.plain(),
        "after": after.plain(),
        "governors": {"policy0": "performance"},
        "window": list(WINDOW),
        "samples": samples,
        "peaks": peaks_until(samples, WINDOW[1], emulated=target == "emulated"),
        **conclude(target, waited, before, after, samples, WINDOW, {"policy0": "performance"}),
    }
    return json.loads(json.dumps(stored))  # type: ignore[no-any-return]


def test_what_was_derived_agrees_with_itself_after_a_way_through_json() -> None:
    for target in ("board", "emulated", "host"):
        assert disagreements(observed(target), events=EVENTS) == []
    stored = observed()
    assert [reason["id"] for reason in stored["reasons"]] == ["not-ready", "disturbed"]


def test_on_the_emulated_target_memory_is_said_to_include_the_emulator() -> None:
    stored = observed("emulated")
    assert (EMULATOR in stored["notes"], stored["peaks"]["emulated"]) == (True, True)
    assert EMULATOR not in observed("host")["notes"]


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def apply(stored: dict[str, Any]) -> None:
        *folders, name = path.split(".")
        at: Any = stored
        for folder in folders:
            at = at[int(folder) if isinstance(at, list) else folder]
        at[int(name) if isinstance(at, list) else name] = value

    return apply


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (change("schema", "rvvbench/observation/0"), "schema is 'rvvbench/observation/0'"),
        (change("target", "cloud"), "target is 'cloud', one of "),
        (change("reasons", []), "reasons lack not-ready: 1.00 CPUs were at work (waited 120 s)"),
        (change("reasons.1.text", "nothing"), "reasons hold disturbed: nothing"),
        (change("notes", ["all was well"]), "notes hold 'all was well'"),
        (change("figures.others_cores", 0.0), "figures.others_cores is 0.0, derived 0.5"),
        (change("figures", {}), "figures.observed_s is missing, derived 6"),
        (change("figures.luck", 1), "figures.luck is nothing that an observation derives"),
        (change("gate", None), "reasons hold not-ready: "),
        (change("samples.4.conditions.cooling.cooling_device0.state", 2), "reasons lack throttled: "),
        (change("peaks.sampled_rss_sum_bytes", 1), "peaks.sampled_rss_sum_bytes is 1, a sample shows 1006"),
        (change("peaks.sampled_rss_sum_bytes", None), "peaks.sampled_rss_sum_bytes is null without a reason"),
        (change("peaks.reasons", {}), "peaks.cgroup_peak_bytes is null without a reason"),
        (change("peaks.emulated", True), "peaks.emulated is True, on this target False belongs"),
        (change("window", [WINDOW[0], WINDOW[1] + 1]), "by the events [2500000000, 7500000000]"),
        (change("window", [9, 5]), "the observation is damaged (ValueError: window is [9, 5])"),
    ],
)
def test_what_was_changed_is_told(done: Callable[[dict[str, Any]], None], said: str) -> None:
    stored = observed()
    done(stored)
    assert any(said in one for one in disagreements(stored, events=EVENTS)), disagreements(stored, events=EVENTS)


def test_a_narrower_window_than_that_of_the_events_is_told_only_where_they_are_given() -> None:
    stored = observed()
    assert disagreements(stored) == []
    assert disagreements(stored, events=[]) == ["window is [2500000000, 7500000000], by the events None"]


def test_the_window_of_a_load_is_held_against_the_events_of_that_load() -> None:
    ends = zip(("c1", "c2"), (WINDOW, (8 * 10**9, 9 * 10**9)), strict=True)
    events = [
        {"event": f"load_{end}", "load": load, "t_ns": t_ns}
        for load, window in ends
        for end, t_ns in zip(("start", "end"), window, strict=True)
    ]
    assert disagreements(observed(), events=events, load="c1") == []
    (said,) = disagreements(observed(), events=events, load="c2")
    assert said.endswith("by the events [8000000000, 9000000000]")


def test_peaks_above_those_of_the_samples_kept_are_no_disagreement() -> None:
    stored = observed()
    stored["peaks"]["sampled_rss_sum_bytes"] = 10**9
    assert disagreements(stored) == []


@pytest.mark.parametrize("name", sorted(observed()))
@pytest.mark.parametrize("value", [None, 7, "x", [], {}, [None], {"a": []}, float("nan")])
def test_damage_is_told_and_never_raised(name: str, value: Any) -> None:
    stored = observed()
    if stored[name] == value or (name, value) == ("governors", {}):
        return
    stored[name] = value
    assert isinstance(disagreements(stored, events=EVENTS), list)
    del stored[name]
    assert disagreements(stored, events=EVENTS) != []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=200)
@given(st.data())
def test_nothing_that_json_can_hold_anywhere_is_raised(data: st.DataObject) -> None:
    stored: Any = copy.deepcopy(STORED)
    at = stored
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return
        key = data.draw(st.sampled_from(keys))
        if isinstance(at[key], dict | list) and data.draw(st.booleans()):
            at = at[key]
        else:
            at[key] = data.draw(JSON)
            break
    assert isinstance(disagreements(stored, events=EVENTS), list)


STORED = observed()


def test_what_is_no_observation_at_all_is_damaged() -> None:
    for nothing in ({}, [], None, 7):
        (said,) = disagreements(nothing)  # type: ignore[arg-type]
        assert said.startswith("the observation is damaged")
