"""The build chain of the kernels: toolchain and runtime images of this machine, for tests marked `container`."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator

import pytest

from rvvbench import project
from rvvbench.engine.service import Engine
from rvvbench.image.recipe import load_recipe
from rvvbench.image.verify import look_up
from rvvbench.provide.kernels import Build
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
