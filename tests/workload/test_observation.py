"""Standing beside a run: with made-up kernel files where a container's are not needed."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import toy_image
from fake_processes import put
from kernel_tree import Tree

from rvvbench.engine.container import ContainerSpec, run_container
from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks
from rvvbench.manifest.models import TargetKind
from rvvbench.observe.gate import Waited
from rvvbench.observe.machine import machine_facts
from rvvbench.observe.moment import Moment, moment
from rvvbench.observe.rederive import disagreements
from rvvbench.observe.sampler import Edges
from rvvbench.progress import Silent
from rvvbench.workload.observation import Observer, Watch

STATUS = "proc/10/status"
MEMORY = "VmHWM:\t110 kB\nVmRSS:\t100 kB\nVmSwap:\t0 kB\n"


class Lines(Silent):
    """A progress that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A board on which process 10 is a container's first."""
    tree = Tree(tmp_path / "kernel")
    put(tree, 10, 1)
    tree.write(STATUS, f"Name:\tpython3\n{MEMORY}NSpid:\t10\t1\n")
    tree.write("proc/stat", "cpu  1000 0 0 500 0 0 0 7 0 0\n")
    return tree


def observer(tree: Tree, target: TargetKind = "board", **asked: Any) -> Observer:
    facts = machine_facts(tree.roots, machine="riscv64", hwcap=lambda: 0)
    made = Observer.for_run(target, machine=facts, **asked)
    return replace(made, edges=Edges(roots=tree.roots, ticks_per_s=100))


def watched(tree: Tree, folder: Path, target: TargetKind = "board", pid: int = 10) -> Watch:
    watch = observer(tree, target).watching(folder / "samples.jsonl", None)
    with watch(pid):
        pass
    return watch


class Busy:
    """A machine of which one CPU is at work for `busy_s`; time passes in sleep only."""

    def __init__(self, busy_s: float) -> None:
        self.now_s = 0.0
        self.busy_s = busy_s

    def moment(self, roots: Any) -> Moment:
        found = moment(roots, ticks_per_s=100)
        assert found.cpu is not None
        now = replace(found.conditions, monotonic_s=self.now_s)
        return replace(found, conditions=now, cpu=replace(found.cpu, busy_s=min(self.now_s, self.busy_s)))

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def observer(self, tree: Tree, target: TargetKind) -> Observer:
        made = observer(tree, target)
        edges = replace(made.edges, moment=self.moment)
        return replace(made, edges=edges, clock=lambda: self.now_s, sleep=self.sleep)


def test_the_gate_tells_what_it_waits_for_now_and_then(tree: Tree) -> None:
    lines = Lines()
    waited = Busy(25.0).observer(tree, "board").before(lines)
    assert (waited.waited_s, waited.unready) == (26.0, ())
    assert lines.lines == [
        f"waiting for the machine to be at rest ({second} s of at most 120 s): "
        "1.00 CPUs were at work, at most 0.25 may be"
        for second in (1, 11, 21)
    ]


def test_a_board_is_waited_for_each_time_and_another_machine_once(tree: Tree) -> None:
    for target, waits in (("board", [120.0, 120.0]), ("host", [30.0, 1.0]), ("emulated", [30.0, 1.0])):
        watcher, lines = Busy(1e9).observer(tree, target), Lines()  # type: ignore[arg-type]
        assert [watcher.before(lines).waited_s for _ in range(2)] == waits
        assert lines.lines[-1].startswith("the machine is not at rest, going on: 1.00 CPUs were at work")


def test_ctrl_c_ends_the_wait(tree: Tree) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace(observer(tree), sleep=interrupted).before(Silent())


def test_pss_is_not_read_unless_asked_for_and_never_often(tree: Tree, tmp_path: Path) -> None:
    assert not any(one["event"] == "sample_pss" for one in watched(tree, tmp_path).samples)
    assert observer(tree, pss_interval_s=10.0).pace.pss_interval_s == 10.0
    with pytest.raises(ValueError, match="disturb"):
        observer(tree, pss_interval_s=9.0)


def test_every_sample_is_on_disk_as_it_is_in_memory(tree: Tree, tmp_path: Path) -> None:
    watch = watched(tree, tmp_path)
    assert [one["event"] for one in watch.samples] == ["sampler_start", "sample", "sample", "sampler_end"]
    lines = (tmp_path / "samples.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == watch.samples


def test_an_observation_is_json_and_agrees_with_itself(tree: Tree, tmp_path: Path) -> None:
    watch = watched(tree, tmp_path)
    first, last = (one["t_ns"] for one in watch.samples[1:3])
    for window in (None, (first, last)):
        found = watch.observation(window)
        assert json.loads(json.dumps(found)) == found
        assert disagreements(found) == []
        assert found["governors"] == {"policy0": "performance", "policy4": "schedutil"}
        assert found["peaks"]["sampled_rss_sum_bytes"] == 100 * 1024
        assert "not-observed" not in [reason["id"] for reason in found["reasons"]]


def test_what_the_gate_did_goes_with_the_repetition_that_follows(tree: Tree, tmp_path: Path) -> None:
    waited = Waited(1.0, 2, (), (), ())
    watch = observer(tree).watching(tmp_path / "samples.jsonl", waited)
    assert watch.observation(None)["gate"] == waited.plain()


def test_a_process_that_is_no_containers_is_not_watched(tree: Tree, tmp_path: Path) -> None:
    tree.write(STATUS, f"Name:\tpython3\n{MEMORY}NSpid:\t10\n")
    found = watched(tree, tmp_path).observation(None)
    (reason,) = [reason for reason in found["reasons"] if reason["id"] == "not-observed"]
    assert "process 10 of this machine is not the container's" in reason["text"]
    assert found["peaks"]["sampled_rss_sum_bytes"] is None
    assert disagreements(found) == []


def test_a_container_that_ended_at_once_says_so(tree: Tree, tmp_path: Path) -> None:
    found = observer(tree).watching(tmp_path / "samples.jsonl", None).observation(None)
    assert [one for one in found["reasons"] if "ended before it could be watched" in one["text"]]
    assert (found["after"], found["figures"]["observed_s"]) == (found["before"], 0.0)
    assert disagreements(found) == []
    notes = observer(tree, "host").watching(tmp_path / "samples.jsonl", None).observation(None)["notes"]
    assert [note for note in notes if "ended before it could be watched" in note]


def test_a_disk_without_room_ends_the_sampling_and_not_the_run(tree: Tree) -> None:
    watch = observer(tree).watching(Path("/dev/full"), None)
    with watch(10):
        pass
    (reason,) = [one for one in watch.observation(None)["reasons"] if one["id"] == "not-observed"]
    assert "No space left on device" in reason["text"]


def test_a_folder_that_cannot_be_written_is_an_error_before_anything_is_measured(tree: Tree, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    watch = observer(tree).watching(tmp_path / "file" / "samples.jsonl", None)
    with pytest.raises(EnvironmentLacks), watch(10):
        pass


def test_the_conditions_after_are_read_also_when_the_run_fails(tree: Tree, tmp_path: Path) -> None:
    watch = observer(tree).watching(tmp_path / "samples.jsonl", None)
    with pytest.raises(RuntimeError), watch(10):
        raise RuntimeError
    assert watch.conditions_after is not None
    assert watch.samples[-1]["event"] == "sampler_end"


@pytest.mark.container
@pytest.mark.timeout(120)
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("podman") is None, reason="needs root and podman")
def test_a_container_is_watched_from_its_start_to_its_end(tmp_path: Path) -> None:
    with Engine(tmp_path / "state") as engine:
        image = toy_image.load(engine, tmp_path)
        watch = Observer.for_run("host").watching(tmp_path / "samples.jsonl", None)
        run_container(engine, ContainerSpec(image, ("/wait",), timeout_s=2.0), observe=watch)
        engine.client.images.remove(toy_image.NAME, force=True)
    found = watch.observation(None)
    assert [one["event"] for one in watch.samples[:2]] == ["sampler_start", "sample"]
    assert {process["command"] for one in found["samples"][1:2] for process in one["processes"]} == {"wait"}
    assert watch.samples[-1]["error"] is None
    assert found["peaks"]["vm_hwm_largest_process_bytes"] > 0
    assert disagreements(json.loads(json.dumps(found))) == []
