from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_run import LOW, TOP, conditions, quiet, sample

from rvvbench.observe.conditions import Cooling, snapshot
from rvvbench.observe.finding import Finding
from rvvbench.observe.gate import Waited
from rvvbench.observe.kernel_files import Roots
from rvvbench.observe.stretch import stretch_of
from rvvbench.observe.validity import Observed, assess, rules_for

BOARD = rules_for("board")


def silent(bare: Roots) -> dict[str, Any]:
    """What a sample shows of a machine that tells nothing."""
    return {"conditions": snapshot(bare).plain() | {"reasons": {}}, "cpu": None, "tree_cpu_s": None}


def ids(found: Observed) -> list[str]:
    return [reason.id for reason in found.reasons]


def test_a_quiet_run_at_the_top_frequency_has_no_reason_and_no_note() -> None:
    found = assess(*quiet(), BOARD)
    assert (found.reasons, found.notes) == ((), ())
    assert found.figures == {
        "observed_s": 10.0,
        "at_top_frequency": {"policy0": 1.0},
        "cpu_pressure_share": 0.0,
        "others_cores": 0.0,
        "steal_cores": 0.0,
        "swap_in_pages": 0,
        "swap_out_pages": 0,
        "highest_millicelsius": 51_000,
    }
    assert json.loads(json.dumps(found.plain())) == found.plain()


def test_time_below_the_top_frequency_is_a_reason_with_its_share() -> None:
    before, after, samples = quiet()
    slow = replace(after, time_in_state_ms={"policy0": {LOW: 2500, TOP: 7500}})
    (reason,) = assess(before, slow, samples, BOARD).reasons
    assert reason.id == "not-at-top-frequency"
    assert reason.text == "policy0 was 75.0% of the time at 1600 MHz, 99% belong"


def test_below_the_top_although_the_governor_asks_for_it_is_throttled_too() -> None:
    before, after, samples = quiet()
    slow = replace(after, time_in_state_ms={"policy0": {LOW: 2500, TOP: 7500}})
    assert ids(assess(before, slow, samples, BOARD, governors={"policy0": "schedutil"})) == ["not-at-top-frequency"]
    found = assess(before, slow, samples, BOARD, governors={"policy0": "performance"})
    assert ids(found) == ["throttled", "not-at-top-frequency"]


def test_a_cooling_device_that_was_active_in_between_only_is_seen() -> None:
    before, after, samples = quiet()
    for at, state in ((3, 1), (4, 2)):
        samples[at]["conditions"]["cooling"]["cooling_device0"]["state"] = state
    (reason,) = assess(before, after, samples, BOARD).reasons
    text = "cooling_device0 (cpufreq-cpu0) slowed CPUs in 2 looks, up to state 2 of 4; 0 belongs"
    assert (reason.id, reason.text) == ("throttled", text)


def test_a_fan_at_work_is_no_reason() -> None:
    before, after, samples = quiet()
    fan = {"cooling_device0": Cooling("pwm-fan", 3, 4)}
    assert assess(replace(before, cooling=fan), replace(after, cooling=fan), samples, BOARD).reasons == ()


def test_swapping_is_a_reason_on_every_target() -> None:
    before, after, samples = quiet()
    for target in ("board", "host", "emulated"):
        found = assess(before, replace(after, swap_in_pages=3, swap_out_pages=4), samples, rules_for(target))
        assert ids(found) == ["swapped"]
        assert "3 pages in and 4 out" in found.reasons[0].text


def test_work_of_others_is_a_reason_with_its_figures() -> None:
    before, after, samples = quiet()
    for at, one in enumerate(samples):
        one["cpu"]["busy_s"] += 0.5 * at
    (reason,) = assess(before, after, samples, BOARD).reasons
    assert (reason.id, reason.text) == ("disturbed", "others used 0.50 CPUs over 8.0 s, at most 0.10 may be")


def test_what_a_hypervisor_took_is_a_reason() -> None:
    before, after, samples = quiet()
    for at, one in enumerate(samples):
        one["cpu"]["steal_s"] += 0.25 * at
    found = assess(before, after, samples, BOARD)
    assert ids(found) == ["disturbed"]
    assert "the hypervisor took 0.25 CPUs" in found.reasons[0].text
    assert found.figures["steal_cores"] == 0.25


def test_pressure_of_our_own_threads_is_no_disturbance() -> None:
    before, after, samples = quiet()
    assert (
        assess(before, replace(after, pressure_us={"cpu": {"some": 9_000_000}, "full": {}}), samples, BOARD).reasons
        == ()
    )


def test_pressure_is_asked_where_others_work_is_not_known() -> None:
    before, after, _ = quiet()
    pressed = replace(after, pressure_us={"cpu": {"some": 2_500_000, "full": 0}})
    found = assess(before, pressed, [sample(conditions(5, top_ms=5000), busy_s=None)], BOARD)
    assert ids(found) == ["disturbed"]
    assert "25.0% of the time" in found.reasons[0].text
    assert found.notes[0].startswith("not observed: CPU time of others")


def test_a_process_that_took_its_time_with_it_makes_others_unknown() -> None:
    before, after, samples = quiet()
    samples[-1]["tree_cpu_s"] = 0.5
    found = assess(before, after, samples, BOARD)
    assert found.figures["others_cores"] is None
    assert "went back" in found.notes[0]


@pytest.mark.parametrize("known", [(0, 1), (0, 3)])
def test_samples_of_a_small_part_do_not_tell_of_the_whole(known: tuple[int, int]) -> None:
    before, after, samples = quiet()
    first, last = known
    for one in (*samples[:first], *samples[last + 1 :]):
        one["tree_cpu_s"] = None
    assert assess(before, after, samples, BOARD).figures["others_cores"] is None


def test_a_machine_that_tells_nothing_gives_notes_and_no_reason(bare: Roots) -> None:
    found = assess(snapshot(bare), snapshot(bare), [{"event": "sample", **silent(bare)}], BOARD)
    assert found.reasons == ()
    assert all(note.startswith("not observed: ") for note in found.notes)
    for what in ("cooling devices", "time at the top", "swapping", "CPU time of others", "pressure"):
        assert any(what in note for note in found.notes), what
    assert any("CONFIG_PSI" in note for note in found.notes)
    assert all(value is None for name, value in found.figures.items() if name != "observed_s")


def test_a_time_too_short_for_the_kernels_units_is_not_observed() -> None:
    before, _, _ = quiet()
    found = assess(before, replace(before, monotonic_s=0.004), [sample(before)], BOARD)
    assert any("10 ms units" in note for note in found.notes)


def test_what_does_not_count_on_a_target_is_a_note_with_the_same_figures() -> None:
    before, after, samples = quiet()
    slow = replace(after, time_in_state_ms={"policy0": {LOW: 2500, TOP: 7500}})
    found = assess(before, slow, samples, rules_for("emulated"))
    assert found.reasons == ()
    (note,) = found.notes
    assert note.startswith("not-at-top-frequency, which is no reason on this target: policy0 was 75.0%")


def test_only_what_was_measured_is_judged() -> None:
    before, after, samples = quiet()
    for one in samples:  # slow while the model was read, in the first second
        one["conditions"]["time_in_state_ms"]["policy0"][str(LOW)] = 900
        one["conditions"]["time_in_state_ms"]["policy0"][str(TOP)] -= 900
    after = replace(after, time_in_state_ms={"policy0": {LOW: 900, TOP: 9100}})
    assert ids(assess(before, after, samples, BOARD)) == ["not-at-top-frequency"]
    found = assess(before, after, samples, BOARD, window=(2_500_000_000, 7_500_000_000))
    assert (found.reasons, found.figures["observed_s"]) == ((), 6.0)


def test_without_a_sample_nothing_is_proven() -> None:
    before, after, _ = quiet()
    (reason,) = assess(before, after, [], BOARD).reasons
    assert (reason.id, reason.text) == ("not-observed", "there is no sample between the start and the end")
    found = assess(before, after, [{"event": "sampler_end", "error": "ended"}], rules_for("host"))
    assert found.reasons == ()
    assert any(note.startswith("not-observed, which is no reason on this target: ") for note in found.notes)


def test_a_sampler_that_failed_before_the_end_is_a_reason_and_one_after_it_is_noted() -> None:
    before, after, samples = quiet()
    failed = [*samples, {"event": "sampler_end", "error": "OSError: full"}]
    (reason,) = assess(before, after, failed, BOARD).reasons
    assert (reason.id, reason.text) == ("not-observed", "the sampler failed before the end: OSError: full")
    assert ids(assess(before, after, failed, BOARD, window=(2 * 10**9, 9_500_000_000))) == ["not-observed"]
    found = assess(before, after, failed, BOARD, window=(2 * 10**9, 8 * 10**9))
    assert found.reasons == ()
    assert found.notes == ("the sampler failed after what was measured: OSError: full",)


@pytest.mark.parametrize("window", [(-1, 5 * 10**9), (5 * 10**9, 10 * 10**9 + 1)])
def test_a_window_outside_of_what_was_observed_is_a_reason(window: tuple[int, int]) -> None:
    (reason,) = assess(*quiet(), BOARD, window=window).reasons
    assert (reason.id, "lies outside" in reason.text) == ("not-observed", True)
    assert assess(*quiet(), BOARD, window=(0, 10 * 10**9)).reasons == ()


def test_what_the_gate_waited_for_in_vain_is_a_reason_on_a_board_only() -> None:
    waited = Waited(120.0, 121, (), (Finding("load", "1.00 CPUs were at work"),), ())
    (reason,) = assess(*quiet(), BOARD, waited=waited).reasons
    assert (reason.id, reason.text) == ("not-ready", "1.00 CPUs were at work (waited 120 s)")
    found = assess(*quiet(), rules_for("host"), waited=waited)
    assert found.reasons == ()
    assert found.notes[0].startswith("not-ready, which is no reason on this target: ")


def test_a_reason_told_once_holds_for_later_samples() -> None:
    before, after, samples = quiet()
    for one in samples:
        one["conditions"]["cooling"] = None
    samples[0]["reasons"] = {"conditions.cooling": "no device"}
    looks = stretch_of(before, after, samples).looks
    assert [look.conditions.reasons for look in looks[1:-1]] == [{"cooling": "no device"}] * 9
    found = assess(before, after, samples, BOARD, window=(2_000_000_000, 8_000_000_000))
    assert found.notes == ("not observed: cooling devices (before the run: no device)",)


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_stretch_encloses_its_window_as_narrowly_as_the_looks_allow(start_ms: int, length_ms: int) -> None:
    end_ms = min(10_000, start_ms + length_ms)
    found = stretch_of(*quiet(), window=(start_ms * 10**6, end_ms * 10**6)).looks
    assert found[0].t_s <= start_ms / 1000 < found[0].t_s + 1
    assert found[-1].t_s - 1 < end_ms / 1000 <= found[-1].t_s


def test_a_window_that_no_look_encloses_is_judged_by_all_that_there_is() -> None:
    before, after, samples = quiet()
    looks = stretch_of(before, after, samples, window=(-(10**9), 99 * 10**9)).looks
    assert (looks[0].t_s, looks[-1].t_s) == (0.0, 10.0)


def test_looks_at_one_moment_make_a_stretch_too() -> None:
    before, after, samples = quiet()
    (look,) = stretch_of(before, after, [samples[4], samples[4]], window=(5 * 10**9, 5 * 10**9)).looks
    assert look.t_s == 5.0
