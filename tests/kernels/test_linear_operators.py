"""The linear operators in the runtime image of this machine's architecture; linear_in_image.py has the checks."""

from __future__ import annotations

import platform
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rvvbench.engine.container import ContainerSpec, Mount, run_container
from rvvbench.provide.kernels import Build, build_kernels
from rvvbench.target.select import host_arch

TIMEOUT_S = 300.0


@pytest.mark.container
def test_linears_are_right_refuse_what_is_wrong_and_say_what_ran(
    build_of: Callable[[str], Build], tmp_path: Path
) -> None:
    build = build_of(host_arch(platform.machine()))
    wheel = build_kernels(build, progress=lambda text: None)
    with zipfile.ZipFile(wheel.path) as archive:
        archive.extractall(tmp_path)
    ended = run_container(
        build.engine,
        ContainerSpec(
            image=build.runtime_image.image_id,
            command=("python3", "/checks/linear_in_image.py"),
            env={"PYTHONPATH": "/site"},
            mounts=(Mount(tmp_path, "/site"), Mount(Path(__file__).parent, "/checks")),
            timeout_s=TIMEOUT_S,
        ),
    )
    assert ended.exit_code == 0, ended.output
    assert "as they should be" in ended.output
