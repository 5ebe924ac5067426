"""The build chain of the kernels: toolchain and runtime images of this machine, for tests marked `container`."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rvvbench import project
from rvvbench.engine.service import Engine
from rvvbench.image.recipe import load_recipe
from rvvbench.image.verify import look_up
from rvvbench.target.select import host_arch


@pytest.fixture(scope="module")
def build_arguments() -> Iterator[Callable[[str], dict[str, Any]]]:
    """What `build_kernel_tests` and `tidy_kernels` need for an architecture."""
    with Engine(project.state_dir()) as engine:

        def arguments(arch: str) -> dict[str, Any]:
            toolchain = look_up(engine, load_recipe("toolchain").image_name(host_arch(platform.machine())))
            assert toolchain is not None, "no toolchain image: rvvbench image build toolchain"
            runtime = look_up(engine, load_recipe("runtime").image_name(arch))
            assert runtime is not None, f"no runtime image: rvvbench image build runtime --arch {arch}"
            return {
                "arch": arch,
                "source_dir": project.root() / "kernels",
                "engine": engine,
                "toolchain_image": toolchain,
                "runtime_image": runtime,
                "state_dir": project.state_dir(),
            }

        yield arguments
