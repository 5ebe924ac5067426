from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_run import quiet

from rvvbench.observe.conditions import Conditions
from rvvbench.observe.narrow import EVENLY, enclosing
from rvvbench.observe.stretch import Window
from rvvbench.observe.validity import assess, rules_for

RULES = rules_for("board")
Run = tuple[Conditions, Conditions, list[dict[str, Any]]]


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run with something wrong at any moment: hot, slowed, silent, without CPU times."""
    before, after, samples = quiet(draw(st.integers(1, 90)))
    for one in samples:
        what = draw(st.sampled_from(["", "", "hot", "slowed", "silent", "untimed", "busy"]))
        now = one["conditions"]
        if what == "hot":
            now["temperature_millicelsius"]["thermal_zone0"] += draw(st.integers(1, 9)) * 1000
        elif what == "slowed":
            now["cooling"]["cooling_device0"]["state"] = draw(st.integers(1, 4))
        elif what == "silent":
            now["cooling"] = None
            now["time_in_state_ms"] = None
            one["reasons"] = {"conditions.cooling": f"silent {draw(st.integers(0, 9))}"}
        elif what == "untimed":
            one["tree_cpu_s"] = None
        elif what == "busy":
            one["cpu"]["busy_s"] += draw(st.floats(0, 5))
    end = {"event": "sampler_end", "t_ns": 0, "error": draw(st.sampled_from([None, "OSError: full"]))}
    return before, after, [{"event": "sampler_start"}, *samples, {"event": "sample_pss", "pss_sum_bytes": 1}, end]


@st.composite
def windows(draw: st.DrawFn) -> Window | None:
    start_ms = draw(st.integers(-2_000, 95_000))
    return draw(st.sampled_from([None, (start_ms * 10**6, (start_ms + draw(st.integers(0, 95_000))) * 10**6)]))


@settings(max_examples=300)
@given(runs(), windows())
def test_the_samples_kept_say_what_all_say(run: Run, window: Window | None) -> None:
    before, after, samples = run
    kept = json.loads(json.dumps(enclosing(before, after, samples, window)))
    assert assess(before, after, kept, RULES, window=window) == assess(before, after, samples, RULES, window=window)


def kept_seconds(seconds: int, window: Window | None) -> list[int]:
    before, after, samples = quiet(seconds)
    return [one["t_ns"] // 10**9 for one in enclosing(before, after, samples, window)]


def test_of_a_short_window_every_sample_is_kept_and_no_other() -> None:
    assert kept_seconds(60, (10_500_000_000, 15_500_000_000)) == [10, 11, 12, 13, 14, 15, 16]


def test_of_a_long_window_some_are_kept_evenly() -> None:
    kept = kept_seconds(4000, (100_500_000_000, 3900_500_000_000))
    assert (kept[0], kept[-1]) == (100, 3901)
    assert EVENLY <= len(kept) <= EVENLY + 4


def test_the_last_look_of_a_long_window_is_kept_although_it_is_cool_and_untimed() -> None:
    before, after, samples = quiet(61)
    samples[1]["conditions"]["temperature_millicelsius"]["thermal_zone0"] += 40_000
    samples[-2]["tree_cpu_s"] = None
    window = (10**9, 59 * 10**9)
    kept = enclosing(before, after, samples, window)
    assert kept[-1]["t_ns"] == 59 * 10**9
    assert assess(before, after, kept, RULES, window=window) == assess(before, after, samples, RULES, window=window)


def test_what_the_sampler_said_of_itself_is_kept_and_pss_is_not() -> None:
    before, after, samples = quiet()
    start, end = {"event": "sampler_start", "pss_interval_s": None}, {"event": "sampler_end", "error": None}
    kept = enclosing(before, after, [start, {"event": "sample_pss"}, *samples, end], None)
    assert kept == [start, *samples, end]


def test_what_a_left_out_sample_told_moves_on() -> None:
    before, after, samples = quiet()
    samples[0]["reasons"] = {"cgroup": "no controller"}
    kept = enclosing(before, after, samples, (5_500_000_000, 6_500_000_000))
    assert [one["reasons"] for one in kept] == [{"cgroup": "no controller"}, {}, {}]
    assert samples[4]["reasons"] == {}


@pytest.mark.parametrize("window", [(-(10**9), -1), (500_000, 600_000), (20 * 10**9, 21 * 10**9)])
def test_that_there_were_samples_is_seen_where_none_is_needed(window: Window) -> None:
    before, after, samples = quiet()
    assert [one["event"] for one in enclosing(before, after, samples, window)][:1] == ["sample"]


def test_without_samples_there_is_nothing_to_keep() -> None:
    before, after, _ = quiet()
    assert enclosing(before, after, [{"event": "sampler_end", "error": "x"}], None) == [
        {"event": "sampler_end", "error": "x"}
    ]


def test_the_only_look_at_cooling_devices_is_kept() -> None:
    before, after, samples = quiet(200)
    for one in samples:
        one["conditions"]["cooling"] = None
    samples[77]["conditions"]["cooling"] = {}
    window = (10 * 10**9, 190 * 10**9)
    kept = enclosing(before, after, samples, window)
    assert 78 in [one["t_ns"] // 10**9 for one in kept]
    assert assess(before, after, kept, RULES, window=window) == assess(before, after, samples, RULES, window=window)
