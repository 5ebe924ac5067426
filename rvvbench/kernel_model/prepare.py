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
from rvvbench.target.select import host_arch
from rvvbench.workload.images import use_image


def build_for(arch: str, stack: str, engine: Engine, state_dir: Path) -> Build:
    """What compiles `kernels/` of this checkout for `arch` with the images of `stack`.

    Raises EnvironmentLacks where an image was not built here.
    """
    manifests = project.manifests_dir()
    declared, _ = load_manifest(manifests, "stacks", stack, Stack)
    lock = load_lock(manifests)
    here = host_arch(platform.machine())
    toolchain = use_image(lock, declared.toolchain, here, engine=engine, state_dir=state_dir)
    runtime = use_image(lock, declared.image, arch, engine=engine, state_dir=state_dir)
    return Build(arch, project.root() / "kernels", engine, toolchain.ref, runtime.ref, state_dir)


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
