"""Plain torch and our kernels compute the same decode step, in this machine's runtime image: what is counted is the
same work.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable
from pathlib import Path

import pytest

from rvvbench import project
from rvvbench.engine.container import ContainerExit, ContainerSpec, Mount, run_container
from rvvbench.kernel_model.prepare import model_configs
from rvvbench.kernel_model.step_caller import PROGRAM, Spec
from rvvbench.provide.kernels import Build, library_of
from rvvbench.target.select import host_arch

MODELS = ("llama-mini", "qwen2-mini", "qwen3-mini")


@pytest.fixture
def drive(build_of: Callable[[str], Build], tmp_path: Path) -> Callable[[Path], ContainerExit]:
    """Runs the driver of a folder over one layer of each model, without marks."""

    def run(bench: Path) -> ContainerExit:
        build = build_of(host_arch(platform.machine()))
        cases = [Spec(name, config, 72, 1).for_driver() for name, config in model_configs(MODELS).items()]
        (tmp_path / "spec.json").write_text(json.dumps({"steps": 0, "cases": cases}))
        return run_container(
            build.engine,
            ContainerSpec(
                image=build.runtime_image.image_id,
                command=("python3", "-B", f"/bench/{PROGRAM}", "/library/_ops.so", "/spec/spec.json"),
                mounts=(
                    Mount(bench, "/bench"),
                    Mount(library_of(build, progress=lambda text: None), "/library/_ops.so"),
                    Mount(tmp_path, "/spec"),
                ),
                timeout_s=300.0,
            ),
        )

    return run


@pytest.mark.container
def test_all_ways_agree_for_every_kind_of_model(drive: Callable[[Path], ContainerExit]) -> None:
    ended = drive(project.root() / "kernels" / "bench")
    assert ended.exit_code == 0, ended.output
    *said, last = [json.loads(line) for line in ended.output.splitlines() if line.startswith("{")]
    assert [(one["case"], one["way"]) for one in said] == [
        (case, way) for case in range(len(MODELS)) for way in ("torch", "kernels", "kernels, INT8")
    ]
    assert {one["difference"] for one in said if one["way"] == "torch"} == {0.0}
    assert any(path.endswith("_ops.so") for path in last["libraries"])
    assert last["groups"][0] == "embedding"


@pytest.mark.container
def test_a_way_that_sees_one_token_less_is_found_out(
    drive: Callable[[Path], ContainerExit], tmp_path_factory: pytest.TempPathFactory
) -> None:
    bench = tmp_path_factory.mktemp("bench")
    for path in (project.root() / "kernels" / "bench").glob("*.py"):
        (bench / path.name).write_text(path.read_text())
    ways = (bench / "step_ways.py").read_text()
    assert ways.count("            given.lengths,\n") == 1
    (bench / "step_ways.py").write_text(
        ways.replace("            given.lengths,\n", "            given.lengths - 1,\n")
    )
    ended = drive(bench)
    assert ended.exit_code == 1
    assert "the logits of kernels are" in ended.output
