from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rvvbench.observe.conditions import Cooling, snapshot
from rvvbench.observe.kernel_files import Roots
from rvvbench.observe.moment import CpuTime, conditions_of, moment, parse_cpu_time, slows_cpus

TICKS = st.integers(0, 10**12)


def test_a_moment_tells_conditions_cpu_time_and_governors(board: Any) -> None:
    board.write("proc/stat", "cpu  100 20 30 9999 8888 4 5 6 50 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    now = moment(board.roots, ticks_per_s=100)
    assert now.cpu == CpuTime(busy_s=1.59, steal_s=0.06)
    assert now.governors == {"policy0": "performance", "policy4": "schedutil"}
    assert now.conditions.load_average == (0.52, 0.58, 0.59)
    assert json.loads(json.dumps(now.plain())) == now.plain()


def test_a_machine_that_tells_nothing_has_none(bare: Roots) -> None:
    assert (moment(bare).cpu, moment(bare).governors) == (None, None)


@given(st.lists(TICKS, min_size=10, max_size=10))
def test_idle_and_waiting_are_no_work_and_guests_are_not_counted_twice(ticks: list[int]) -> None:
    cpu = parse_cpu_time(" ".join(map(str, ticks)), 100)
    assert cpu == CpuTime(sum(ticks[at] for at in (0, 1, 2, 5, 6)) / 100, ticks[7] / 100)


@given(st.lists(TICKS, max_size=7).map(lambda ticks: " ".join(map(str, ticks))) | st.text(alphabet="ab ", max_size=9))
def test_a_damaged_line_tells_no_time(text: str) -> None:
    assert parse_cpu_time(text, 100) is None


def test_conditions_come_back_from_json(board: Any, bare: Roots) -> None:
    for now in (snapshot(board.roots), snapshot(bare)):
        assert conditions_of(json.loads(json.dumps(now.plain()))) == now


def test_only_some_cooling_devices_slow_cpus() -> None:
    kinds = ("cpufreq-cpu0", "thermal-cpufreq-1", "pwm-fan", "Processor")
    assert [slows_cpus(Cooling(kind, 1, 4)) for kind in kinds] == [True, True, False, True]
    assert not any(slows_cpus(Cooling(kind, 0, 4)) for kind in kinds)
