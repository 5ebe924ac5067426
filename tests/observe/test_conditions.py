from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rvvbench.observe.conditions import (
    Conditions,
    Cooling,
    difference,
    parse_pressure,
    parse_time_in_state,
    snapshot,
    top_shares,
)
from rvvbench.observe.kernel_files import Roots


def test_a_snapshot_reads_what_a_board_shows(board: Any) -> None:
    now = snapshot(board.roots)
    assert now.load_average == (0.52, 0.58, 0.59)
    assert now.frequency_khz == {"policy0": 1600000}
    assert now.time_in_state_ms == {"policy0": {614400: 1000, 1600000: 9000}, "policy4": {614400: 0, 1600000: 500}}
    assert now.temperature_millicelsius == {"thermal_zone0": 51000}
    assert now.cooling == {"cooling_device0": Cooling("cpufreq-cpu0", 0, 4)}
    assert now.pressure_us == {"cpu": {"some": 1000, "full": 0}}
    assert (now.swap_in_pages, now.swap_out_pages) == (10, 20)
    assert now.memory_available_bytes == 12000000 * 1024
    assert now.reasons == {}


def test_a_machine_that_tells_nothing_gives_nulls_with_reasons(bare: Roots) -> None:
    now = snapshot(bare)
    unknown = {name for name in Conditions.__dataclass_fields__ if getattr(now, name) is None}
    assert unknown == now.reasons.keys()
    assert unknown == set(Conditions.__dataclass_fields__) - {"unix_s", "monotonic_s", "reasons"}


def test_a_snapshot_is_json_after_plain(board: Any) -> None:
    plain = snapshot(board.roots).plain()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["time_in_state_ms"]["policy0"] == {"614400": 1000, "1600000": 9000}


def test_a_sensor_that_refuses_to_be_read_is_left_out(board: Any) -> None:
    board.write("sys/class/thermal/thermal_zone1/temp", "")
    assert snapshot(board.roots).temperature_millicelsius == {"thermal_zone0": 51000}


def test_zones_come_in_the_order_of_their_numbers(board: Any) -> None:
    for number in (10, 9):
        board.write(f"sys/class/thermal/thermal_zone{number}/temp", "40000")
    assert list(snapshot(board.roots).temperature_millicelsius or {}) == [
        "thermal_zone0",
        "thermal_zone9",
        "thermal_zone10",
    ]


def test_a_run_that_was_slowed_down_shows_in_the_difference(board: Any) -> None:
    before = snapshot(board.roots)
    board.write("sys/devices/system/cpu/cpufreq/policy0/stats/time_in_state", "614400 200\n1600000 1200\n")
    board.write("sys/class/thermal/thermal_zone0/temp", "76000\n")
    board.write("sys/class/thermal/cooling_device0/cur_state", "2\n")
    board.write("proc/vmstat", "pswpin 13\npswpout 20\n")
    board.write("proc/pressure/cpu", "some avg10=0 total=5000\nfull avg10=0 total=1\n")
    after = replace(snapshot(board.roots), monotonic_s=before.monotonic_s + 4.0)
    change = difference(before, after)
    assert change.elapsed_s == 4.0
    assert change.time_in_state_ms == {"policy0": {614400: 1000, 1600000: 3000}, "policy4": {614400: 0, 1600000: 0}}
    assert change.at_top_frequency == {"policy0": 0.75}
    assert change.warmer_millicelsius == {"thermal_zone0": 25000}
    assert change.cooled == ("cooling_device0",)
    assert change.stalled_us == {"cpu": {"some": 4000, "full": 1}}
    assert (change.swap_in_pages, change.swap_out_pages) == (3, 0)
    assert change.reasons == {}


def test_a_counter_that_went_back_is_unknown_and_not_negative(board: Any) -> None:
    before = snapshot(board.roots)
    board.write("sys/devices/system/cpu/cpufreq/policy0/stats/time_in_state", "614400 0\n1600000 10\n")
    board.write("proc/vmstat", "pswpin 0\npswpout 20\n")
    change = difference(before, snapshot(board.roots))
    assert change.time_in_state_ms is None
    assert change.at_top_frequency is None
    assert change.swap_in_pages is None
    assert change.swap_out_pages == 0
    assert change.reasons.keys() == {"time_in_state_ms", "swap_in_pages"}


def test_a_policy_that_disappeared_makes_the_frequencies_unknown(board: Any) -> None:
    before = snapshot(board.roots)
    states = before.time_in_state_ms or {}
    after = replace(before, time_in_state_ms={"policy0": states["policy0"]})
    assert difference(before, after).time_in_state_ms is None


def test_what_one_snapshot_lacks_the_difference_lacks_with_its_reason(board: Any, bare: Roots) -> None:
    change = difference(snapshot(board.roots), snapshot(bare))
    assert change.warmer_millicelsius is None
    assert change.cooled is None
    assert change.stalled_us is None
    assert change.reasons["temperature_millicelsius"] == "after the run: the kernel offers no thermal zone"


def test_pressure_counts_what_has_passed_since_boot() -> None:
    text = "some avg10=1.53 avg60=0.87 avg300=0.73 total=1157622\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
    assert parse_pressure(text) == {"some": 1157622, "full": 7}


@given(st.dictionaries(st.integers(1, 10**7), st.integers(0, 10**12), min_size=1))
def test_time_in_state_is_in_units_of_ten_milliseconds(states: dict[int, int]) -> None:
    text = "\n".join(f"{khz} {units}" for khz, units in states.items())
    assert parse_time_in_state(text) == {khz: units * 10 for khz, units in states.items()}


@given(st.dictionaries(st.integers(1, 10**7), st.integers(0, 10**9), min_size=1))
def test_a_share_at_the_top_frequency_is_a_share(states: dict[int, int]) -> None:
    shares = top_shares({"policy0": states})
    assert all(0 <= share <= 1 for share in shares.values())
    assert bool(shares) == any(states.values())


@given(st.dictionaries(st.integers(1, 9), st.integers(0, 10**6), min_size=1), st.integers(0, 10**6))
def test_equal_snapshots_differ_in_nothing(states: dict[int, int], pages: int) -> None:
    moment = Conditions(0.0, 0.0, None, None, {"policy0": states}, {}, {}, {}, pages, pages, None)
    change = difference(moment, moment)
    assert change.time_in_state_ms == {"policy0": dict.fromkeys(states, 0)}
    assert (change.swap_in_pages, change.swap_out_pages, change.reasons) == (0, 0, {})
