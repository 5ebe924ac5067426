from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.observe.conditions import Conditions, Cooling
from rvvbench.observe.finding import Finding
from rvvbench.observe.gate import Limits, Waited, limits_of, not_observed, ready, wait_until_ready, waited_of
from rvvbench.observe.machine import machine_facts
from rvvbench.observe.moment import CpuTime, Moment

REST = Conditions(0.0, 0.0, (7.5, 4.0, 2.0), None, None, {"thermal_zone0": 50_000}, {}, None, 0, 0, None)
LIMITS = Limits(temperature_millicelsius={"thermal_zone0": 60_000}, governors={"policy0": "performance"})


def at(second: float, busy_s: float | None, governor: str = "performance", **conditions: Any) -> Moment:
    cpu = None if busy_s is None else CpuTime(busy_s, 0.0)
    return Moment(replace(REST, monotonic_s=second, **conditions), cpu, {"policy0": governor})


def ids(earlier: Moment, now: Moment, limits: Limits = LIMITS) -> list[str]:
    return [finding.id for finding in ready(earlier, now, limits)]


def test_a_machine_at_rest_is_ready_although_its_load_average_remembers_the_last_repetition() -> None:
    assert ids(at(0, 100.0), at(1, 100.1)) == []


def test_cpus_at_work_are_a_reason_with_its_figures() -> None:
    (finding,) = ready(at(0, 100.0), at(2, 103.0), LIMITS)
    assert (finding.id, finding.text) == ("load", "1.50 CPUs were at work, at most 0.25 may be")


def test_without_cpu_times_the_load_average_is_taken() -> None:
    (finding,) = ready(at(0, None), at(1, None), LIMITS)
    assert (finding.id, finding.text) == ("load", "load average 7.50, at most 0.50 may be")
    assert ids(at(0, None), at(1, None, load_average=(0.3, 4.0, 4.0))) == []


def test_a_hot_zone_is_a_reason_and_one_at_the_limit_is_none() -> None:
    hot = at(1, 0.0, temperature_millicelsius={"thermal_zone0": 61_500, "thermal_zone1": 99_000})
    (finding,) = ready(at(0, 0.0), hot, LIMITS)
    assert finding.text == "thermal_zone0 at 61.5 °C, at most 60.0 °C may be"
    assert ids(at(0, 0.0), at(1, 0.0, temperature_millicelsius={"thermal_zone0": 60_000})) == []


def test_a_device_that_slows_cpus_is_a_reason_and_a_fan_is_none() -> None:
    devices = {"cooling_device0": Cooling("cpufreq-cpu0", 1, 4), "cooling_device1": Cooling("pwm-fan", 3, 4)}
    (finding,) = ready(at(0, 0.0), at(1, 0.0, cooling=devices), LIMITS)
    assert finding.id == "cooling"
    assert "cooling_device0" in finding.text


def test_a_governor_that_is_not_what_it_was_is_a_reason() -> None:
    (finding,) = ready(at(0, 0.0), at(1, 0.0, "schedutil"), LIMITS)
    assert (finding.id, finding.text) == ("governor", "policy0 is governed by schedutil, at the start by performance")


def test_what_is_not_known_is_no_reason_and_is_noted() -> None:
    bare = Moment(replace(REST, load_average=None, temperature_millicelsius=None, cooling=None), None, None)
    assert ready(bare, bare, LIMITS) == []
    assert len(not_observed(bare, LIMITS)) == 3
    assert not_observed(at(0, 0.0), LIMITS) == []
    assert "no passive trip point" in not_observed(at(0, 0.0), replace(LIMITS, temperature_millicelsius={}))[0]


def test_limits_come_from_the_machine(board: Any) -> None:
    limits = limits_of(machine_facts(board.roots, machine="riscv64", hwcap=lambda: 0))
    assert limits.temperature_millicelsius == {"thermal_zone0": 60_000}
    assert limits.governors == {"policy0": "performance", "policy4": "schedutil"}


def test_a_machine_without_trip_points_or_governors_has_no_such_limits(bare: Any) -> None:
    limits = limits_of(machine_facts(bare, machine="riscv64", hwcap=lambda: 0))
    assert (limits.temperature_millicelsius, limits.governors) == ({}, None)


class Machine:
    """Gives one moment after the other, the last for ever; its time passes only in sleep."""

    def __init__(self, moments: Iterable[Moment]) -> None:
        self.moments = list(moments)
        self.now_s = 1000.0

    def look(self) -> Moment:
        now = self.moments.pop(0) if len(self.moments) > 1 else self.moments[0]
        return replace(now, conditions=replace(now.conditions, monotonic_s=self.now_s))

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def wait(self, deadline_s: float, poll_s: float = 1.0) -> Waited:
        return wait_until_ready(self.look, lambda: self.now_s, self.sleep, deadline_s, LIMITS, poll_s=poll_s)


def test_a_ready_machine_is_looked_at_twice() -> None:
    waited = Machine([at(0, 5.0)]).wait(deadline_s=60.0)
    assert (waited.waited_s, waited.looks, waited.waited_for, waited.unready, waited.reasons) == (1.0, 2, (), (), ())


def test_the_gate_says_how_long_it_waited_and_for_what() -> None:
    hot = {"thermal_zone0": 70_000}
    busy = [at(0, 0.0), at(0, 1.0, temperature_millicelsius=hot), at(0, 1.0, temperature_millicelsius=hot), at(0, 1.0)]
    waited = Machine(busy).wait(deadline_s=60.0)
    assert waited.waited_s == 3.0
    assert [finding.id for finding in waited.waited_for] == ["load", "temperature"]
    assert waited.reasons == ()


def test_after_the_deadline_it_goes_on_and_says_so() -> None:
    waited = Machine([at(0, 0.0, temperature_millicelsius={"thermal_zone0": 70_000})]).wait(deadline_s=10.0)
    assert waited.waited_s == 10.0
    (reason,) = waited.reasons
    assert reason.id == "not-ready"
    assert reason.text == "thermal_zone0 at 70.0 °C, at most 60.0 °C may be (waited 10 s)"
    assert [finding.id for finding in waited.waited_for] == ["temperature"]


def test_a_changed_governor_is_not_waited_for() -> None:
    waited = Machine([at(0, 0.0, "schedutil")]).wait(deadline_s=600.0)
    assert waited.waited_s == 1.0
    assert waited.waited_for == ()
    assert [reason.id for reason in waited.reasons] == ["not-ready"]


def test_what_the_gate_did_is_json() -> None:
    plain = Machine([at(0, 0.0, "schedutil", temperature_millicelsius={"thermal_zone0": 70_000})]).wait(3.0).plain()
    assert json.loads(json.dumps(plain)) == plain
    assert [finding["id"] for finding in plain["unready"]] == ["temperature", "governor"]


@pytest.mark.parametrize("deadline_s", [0.0, 0.5])
def test_a_deadline_shorter_than_a_look_still_looks(deadline_s: float) -> None:
    waited = Machine([at(0, 0.0, temperature_millicelsius={"thermal_zone0": 70_000})]).wait(deadline_s)
    assert (waited.looks, len(waited.reasons)) == (2, 1)


@given(st.integers(1, 50), st.floats(0.5, 5.0))
def test_the_deadline_is_never_exceeded_by_more_than_the_first_look(deadline_s: int, poll_s: float) -> None:
    waited = Machine([at(0, 0.0, temperature_millicelsius={"thermal_zone0": 70_000})]).wait(deadline_s, poll_s)
    assert waited.waited_s <= max(deadline_s, poll_s) + 1e-6


def test_what_the_gate_did_comes_back_from_json_whole() -> None:
    load, governor = Finding("load", "1.00 CPUs"), Finding("governor", "policy0")
    waited = Waited(12.5, 13, (load,), (load, governor), ("not observed: temperature",))
    assert waited_of(json.loads(json.dumps(waited.plain()))) == waited
