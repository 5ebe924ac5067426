from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fake_processes import end, put
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.observe.kernel_files import Roots
from rvvbench.observe.moment import moment
from rvvbench.observe.peaks import peaks
from rvvbench.observe.sampler import Edges, Pace, Sampler, sampling


class Clock:
    """Time that passes only when somebody waits; own CPU time that each reading of a tree's sample costs."""

    def __init__(self, roots: Roots, sample_cost_s: float = 0.0) -> None:
        self.now_ns = 5_000_000_000
        self.cpu_s = 0.0
        self.waits: list[float] = []
        self._cost_s = sample_cost_s
        self.edges = Edges(
            roots=roots,
            clock_ns=lambda: self.now_ns,
            own_cpu_s=lambda: self.cpu_s,
            moment=self._moment,
            ticks_per_s=100,
        )

    def _moment(self, roots: Roots) -> Any:
        self.cpu_s += self._cost_s
        found = moment(roots, ticks_per_s=100)
        return replace(found, conditions=replace(found.conditions, monotonic_s=self.now_ns / 1e9))

    def wait(self, steps: list[Callable[[], None]]) -> Callable[[float], bool]:
        """A wait that takes one of `steps` each time, and says to stop after the last."""

        def wait(seconds: float) -> bool:
            self.waits.append(seconds)
            self.now_ns += round(seconds * 1e9)
            if steps:
                steps.pop(0)()
            return not steps

        return wait


def nothing() -> None: ...


def run(
    board: Any, steps: list[Callable[[], None]], pace: Pace | None = None, cost_s: float = 0.0
) -> tuple[list[dict[str, Any]], Clock]:
    clock = Clock(board.roots, cost_s)
    events: list[dict[str, Any]] = []
    sampler = Sampler(10, events.append, pace or Pace(interval_s=1.0, pss_interval_s=None), clock.edges)
    sampler.run(clock.wait(list(steps)))
    assert sampler.failure is None
    return events, clock


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == name]


@pytest.fixture
def running(board: Any) -> Any:
    put(board, 10, 1, rss_kib=100, pss_kib=60, cpu=50)
    put(board, 11, 10, rss_kib=300, pss_kib=200, cpu=150)
    board.write("proc/stat", "cpu  1000 0 0 500 0 0 0 7 0 0\n")
    return board


def test_samples_come_as_they_are_taken_with_a_last_one_at_the_stop(running: Any) -> None:
    events, _ = run(running, [nothing, nothing])
    assert [event["event"] for event in events] == ["sampler_start", "sample", "sample", "sample", "sampler_end"]
    assert [event["t_ns"] for event in named(events, "sample")] == [5e9, 6e9, 7e9]
    assert events[-1]["samples"] == 3
    assert (events[-1]["elapsed_s"], events[-1]["longest_gap_s"]) == (2.0, 1.0)
    assert json.loads(json.dumps(events)) == events


def test_a_sample_tells_each_process_the_sum_and_the_machine(running: Any) -> None:
    first = named(run(running, [nothing])[0], "sample")[0]
    assert [process["pid"] for process in first["processes"]] == [10, 11]
    assert first["processes"][1] == {
        "pid": 11,
        "command": "python3",
        "rss_bytes": 300 * 1024,
        "vm_hwm_bytes": 310 * 1024,
        "swap_bytes": 0,
        "cpu_s": 1.5,
    }
    assert first["rss_sum_bytes"] == 400 * 1024
    assert first["tree_cpu_s"] == 2.0
    assert first["cpu"] == {"busy_s": 10.0, "steal_s": 0.07}
    assert first["governors"]["policy0"] == "performance"
    assert first["conditions"]["time_in_state_ms"]["policy0"] == {"614400": 1000, "1600000": 9000}
    assert first["conditions"]["temperature_millicelsius"] == {"thermal_zone0": 51000}


def test_what_is_missing_is_null_in_each_sample_and_explained_in_the_first(running: Any) -> None:
    (running.root / "proc/pressure/cpu").unlink()
    (running.root / "proc/stat").unlink()
    first, *later = named(run(running, [nothing, nothing])[0], "sample")
    assert first["reasons"].keys() == {"cgroup", "conditions.pressure_us", "cpu"}
    for sample in (first, *later):
        assert (sample["cgroup"], sample["cpu"], sample["conditions"]["pressure_us"]) == (None, None, None)
    assert all("reasons" not in sample for sample in later)


def test_a_tree_that_ends_ends_the_sampling_with_a_look_at_the_machine(running: Any) -> None:
    def both_end() -> None:
        end(running, 10)
        end(running, 11)

    events, _ = run(running, [nothing, both_end, nothing, nothing])
    *_, last = named(events, "sample")
    assert len(named(events, "sample")) == 3
    assert (last["processes"], last["rss_sum_bytes"], last["tree_cpu_s"]) == ([], None, None)
    assert last["reasons"]["tree_cpu_s"] == "the tree has ended"
    assert last["cpu"] is not None


def test_a_root_that_never_was_gives_one_empty_sample(board: Any) -> None:
    events, clock = run(board, [nothing])
    assert [event["event"] for event in events] == ["sampler_start", "sample", "sampler_end"]
    assert clock.waits == []


def test_pss_is_read_at_its_own_pace(running: Any) -> None:
    events, _ = run(running, [nothing] * 6, Pace(interval_s=1.0, pss_interval_s=3.0))
    found = named(events, "sample_pss")
    assert [event["t_ns"] for event in found] == [5e9, 8e9]
    assert found[0]["pss_sum_bytes"] == 260 * 1024
    assert found[0]["processes"] == [{"pid": 10, "pss_bytes": 60 * 1024}, {"pid": 11, "pss_bytes": 200 * 1024}]


def test_one_pss_that_is_refused_makes_the_sum_null(running: Any) -> None:
    (running.root / "proc/11/smaps_rollup").unlink()
    (found,) = named(run(running, [nothing], Pace(pss_interval_s=60.0))[0], "sample_pss")
    assert found["pss_sum_bytes"] is None
    assert found["processes"][0]["pss_bytes"] == 60 * 1024
    assert "smaps_rollup" in found["reasons"]["pss_sum_bytes"]


def test_dear_samples_are_taken_less_often(running: Any) -> None:
    pace = Pace(interval_s=1.0, pss_interval_s=None, cpu_share=0.01)
    events, clock = run(running, [nothing] * 20, pace, cost_s=0.05)
    assert clock.waits == [5.0] * 20
    assert events[-1]["cpu_s"] / events[-1]["elapsed_s"] < 0.011  # the last sample is not waited after


@given(st.floats(0.001, 100), st.floats(0, 100), st.floats(0, 100), st.floats(0.0001, 1))
def test_pauses_are_no_shorter_than_the_intervals_and_keep_the_share(
    interval: float, cost: float, pss_cost: float, share: float
) -> None:
    pace = Pace(interval, pss_interval_s=2 * interval, cpu_share=share)
    pause_s, pss_pause_s = pace.pause_s(cost), pace.pss_pause_s(pss_cost)
    assert pause_s >= interval
    assert pss_pause_s >= 2 * interval
    assert cost / pause_s + pss_cost / pss_pause_s <= share * (1 + 1e-9)


def test_the_whole_share_goes_to_the_rest_where_pss_is_not_read() -> None:
    assert Pace(1.0, None, 0.01).pause_s(0.1) == 10.0
    assert Pace(1.0, 10.0, 0.01).pause_s(0.075) == 10.0


def test_a_writer_that_fails_ends_the_sampling_and_is_told(running: Any) -> None:
    clock = Clock(running.roots)
    written: list[dict[str, Any]] = []

    def emit(event: dict[str, Any]) -> None:
        if len(written) == 2:
            raise OSError("no space left")
        written.append(event)

    sampler = Sampler(10, emit, Pace(), clock.edges)
    sampler.run(clock.wait([nothing] * 5))
    assert sampler.failure == "OSError: no space left"


def test_a_source_that_breaks_is_in_the_last_event(running: Any) -> None:
    running.write("proc/pressure/cpu", "some total=broken\n")
    clock = Clock(running.roots)
    events: list[dict[str, Any]] = []
    sampler = Sampler(10, events.append, Pace(), clock.edges)
    sampler.run(clock.wait([nothing]))
    assert events[-1]["event"] == "sampler_end"
    assert events[-1]["error"] == sampler.failure
    assert "broken" in (sampler.failure or "")


def test_the_thread_ends_with_the_body(running: Any) -> None:
    events: list[dict[str, Any]] = []
    first = threading.Event()

    def emit(event: dict[str, Any]) -> None:
        events.append(event)
        if event["event"] == "sample":
            first.set()

    with sampling(10, emit, Pace(interval_s=3600.0), Edges(running.roots)) as sampler:
        assert first.wait(10.0)
    assert sampler.failure is None
    assert [event["event"] for event in events][-2:] == ["sample", "sampler_end"]
    assert "sampler" not in {thread.name for thread in threading.enumerate()}


def test_peaks_are_the_largest_samples_and_the_kernels_own(running: Any) -> None:
    running.write("proc/self/mounts", f"cgroup2 {running.root}/sys/fs/cgroup cgroup2 rw 0 0\n")
    running.write("proc/self/cgroup", "0::/\n")
    running.write("proc/10/cgroup", "0::/it\n")

    def group(peak: int, anonymous: int, file: int) -> None:
        for name, text in (("max", "max"), ("current", "1"), ("peak", f"{peak}")):
            running.write(f"sys/fs/cgroup/it/memory.{name}", text)
        running.write("sys/fs/cgroup/it/memory.stat", f"anon {anonymous}\nfile {file}\nshmem 0\n")

    def grow() -> None:
        group(9000, 2000, 800)
        put(running, 11, 10, rss_kib=50, cpu=1)

    group(7000, 1000, 900)
    assert peaks(run(running, [grow], Pace())[0]) == {
        "sampled_rss_sum_bytes": 400 * 1024,
        "sampled_pss_sum_bytes": 260 * 1024,
        "vm_hwm_largest_process_bytes": 310 * 1024,
        "sampled_swap_sum_bytes": 0,
        "cgroup_peak_bytes": 9000,
        "sampled_cgroup_anonymous_bytes": 2000,
        "sampled_cgroup_file_bytes": 900,
    }


def test_peaks_of_nothing_are_unknown() -> None:
    assert set(peaks([]).values()) == {None}
