from __future__ import annotations

from rvvbench import project
from rvvbench.engine.container import ContainerExit, Enforcement
from rvvbench.manifest.resolve import resolve
from rvvbench.workload.process import problems


def said(**changes: object) -> list[str]:
    resolved = resolve(project.manifests_dir(), "llama-one-batch", "emulated")
    quiet = {
        "exit_code": 0,
        "seconds": 1.0,
        "timed_out": False,
        "oom_killed": None,
        "memory": Enforcement(12 << 30, None),
        "output": "",
    }
    return list(problems(ContainerExit(**{**quiet, **changes}), resolved))  # type: ignore[arg-type]


def test_a_run_in_order_has_none() -> None:
    assert said() == []


def test_a_memory_limit_that_was_not_in_force_is_told_with_its_reason() -> None:
    (problem,) = said(memory=Enforcement(None, "the host mounts no memory controller"))
    assert "the host mounts no memory controller" in problem


def test_a_process_that_hung_is_told_with_the_limit_that_it_passed() -> None:
    (problem,) = said(timed_out=True)
    assert "1800 s (timeouts_s.process)" in problem


def test_a_process_that_ran_out_of_memory_is_told() -> None:
    (problem,) = said(oom_killed=True)
    assert "memory" in problem
