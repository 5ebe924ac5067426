"""The build chain of the kernels: toolchain and runtime images of this machine, for tests marked `container`."""

from __future__ import annotations

import platform
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rvvbench import project
from rvvbench.engine.container import ContainerExit, ContainerSpec, Mount, run_container
from rvvbench.engine.service import Engine
from rvvbench.image.recipe import load_recipe
from rvvbench.image.verify import look_up
from rvvbench.provide.kernels import Build, build_kernels
from rvvbench.target.select import host_arch


@pytest.fixture(scope="module")
def build_of() -> Iterator[Callable[[str], Build]]:
    """From an architecture to what is compiled for it."""
    with Engine(project.state_dir()) as engine:

        def build(arch: str) -> Build:
            toolchain = look_up(engine, load_recipe("toolchain").image_name(host_arch(platform.machine())))
            assert toolchain is not None, "no toolchain image: rvvbench image build toolchain"
            runtime = look_up(engine, load_recipe("runtime").image_name(arch))
            assert runtime is not None, f"no runtime image: rvvbench image build runtime --arch {arch}"
            return Build(arch, project.root() / "kernels", engine, toolchain, runtime, project.state_dir())

        yield build


@pytest.fixture
def check_in_image(build_of: Callable[[str], Build], tmp_path: Path) -> Callable[[str], ContainerExit]:
    """Runs a script of this folder in this machine's runtime image, with the kernels and the plugin on the path."""

    def check(script: str) -> ContainerExit:
        build = build_of(host_arch(platform.machine()))
        wheel = build_kernels(build, progress=lambda text: None)
        with zipfile.ZipFile(wheel.path) as archive:
            archive.extractall(tmp_path)
        return run_container(
            build.engine,
            ContainerSpec(
                image=build.runtime_image.image_id,
                command=("python3", f"/checks/{script}"),
                env={"PYTHONPATH": "/site:/plugin"},
                mounts=(
                    Mount(tmp_path, "/site"),
                    Mount(project.root() / "kernels" / "python" / "sglang_rvv" / "src", "/plugin"),
                    Mount(Path(__file__).parent, "/checks"),
                ),
                timeout_s=300.0,
            ),
        )

    return check
