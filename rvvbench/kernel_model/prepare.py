"""What the commands below `rvvbench kernels` build before they begin."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from pathlib import Path

from rvvbench import project
from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks
from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.lock import load_lock
from rvvbench.manifest.models import Model, Stack
from rvvbench.provide.kernels import PROGRAMS, Build, errors_of
from rvvbench.workload.provision import kernel_build


def build_for(arch: str, stack: str, engine: Engine, state_dir: Path) -> Build:
    """`kernel_build` with the stack of that name and the lock."""
    manifests = project.manifests_dir()
    declared, _ = load_manifest(manifests, "stacks", stack, Stack)
    return kernel_build(declared, arch, load_lock(manifests), engine, state_dir=state_dir)


def model_configs(names: tuple[str, ...]) -> dict[str, dict[str, object]]:
    """The Hugging Face configurations of models, from their manifests."""
    manifests = project.manifests_dir()
    return {name: dict(load_manifest(manifests, "models", name, Model)[0].config) for name in names}


def native_driver(state_dir: Path) -> Path:
    """The timing driver compiled by this machine's own compiler, where there is no toolchain image (riscv64).

    Raises EnvironmentLacks where there is no compiler or it fails.
    """
    compilers = ("clang++-22", "clang++", "g++")
    cxx = next((name for name in compilers if shutil.which(name)), None)
    if cxx is None:
        raise EnvironmentLacks(
            f"none of {', '.join(compilers)} is installed", where="PATH", mend="apt-get install g++, or use --driver"
        )
    folder = state_dir / "kernels" / "bench" / "native"
    with project.writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    command = ["sh", str(project.root() / "kernels" / "build.sh"), platform.machine(), "/", str(folder), "bench"]
    done = subprocess.run(command, env={**os.environ, "CXX": cxx}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise EnvironmentLacks(
            f"{cxx} does not compile the kernels:\n{errors_of(done.stderr)}", where=str(project.root() / "kernels")
        )
    return folder / PROGRAMS["bench"]
