"""What runs in this machine's own runtime image, with the plugin, the kernels and the small Llama."""

from __future__ import annotations

import ast
import json
import platform
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rvvbench import project
from rvvbench.engine.container import ContainerExit, ContainerSpec, Mount, run_container
from rvvbench.engine.service import Engine
from rvvbench.manifest.resolve import resolve
from rvvbench.progress import Silent
from rvvbench.provide.site import ensure_site
from rvvbench.target.select import select
from rvvbench.workload.provision import Provision, provide

HERE = Path(__file__).parent
MARK = "CHECKED "


@dataclass(frozen=True)
class Bench:
    """`plugin` and `kernels` are site folders of one wheel each; `provision` has both in one, image and checkpoint."""

    engine: Engine
    provision: Provision
    plugin: Path
    kernels: Path

    def run(
        self,
        *command: str,
        site: Path | None = None,
        mounts: tuple[Mount, ...] = (),
        env: Mapping[str, str] | None = None,
    ) -> ContainerExit:
        """`python3 COMMAND...` in a container with nothing outside: scripts of this folder are at /checks."""
        return run_container(
            self.engine,
            ContainerSpec(
                image=self.provision.image.reference,
                command=("python3", *command),
                env={"HOME": "/tmp", "CHECKS_MODEL": "/model", "PYTHONDONTWRITEBYTECODE": "1", **(env or {})},
                mounts=(
                    Mount(site or self.provision.sites["rvv-kernels"], "/rvvbench/site"),
                    Mount(self.provision.checkpoint.path, "/model"),
                    Mount(HERE, "/checks"),
                    *mounts,
                ),
                timeout_s=1200.0,
                shm_bytes=1 << 30,
            ),
        )

    def checks(self, *modules: str) -> Checked:
        """Run the checks of these modules in one process."""
        return Checked.of(self.run("/checks/checks_in_image.py", *modules))


@dataclass(frozen=True)
class Checked:
    """What the checks of a container said: {module.check: traceback, or None where it passed}."""

    problems: dict[str, str | None]
    output: str

    @classmethod
    def of(cls, ended: ContainerExit) -> Checked:
        told = [json.loads(line.removeprefix(MARK)) for line in ended.output.splitlines() if line.startswith(MARK)]
        return cls({line["check"]: line["problem"] for line in told}, ended.output)

    def hold(self, check: str) -> None:
        """Fail the test with the check's own traceback, or with the end of the output where it never ran."""
        if check not in self.problems:
            pytest.fail(f"{check} did not run: {self.output[-4000:]}", pytrace=False)
        problem = self.problems[check]
        if problem is not None:
            pytest.fail(problem, pytrace=False)


def checks_of(*modules: str) -> list[str]:
    """Names of the checks in modules that can only be imported in the image."""
    return [
        f"{module}.{function.name}"
        for module in modules
        for function in ast.parse((HERE / f"{module}.py").read_text(encoding="utf-8")).body
        if isinstance(function, ast.FunctionDef) and function.name.startswith("check_")
    ]


@contextmanager
def bench(folder: Path) -> Iterator[Bench]:
    """As for a run of the experiment `llama-one-batch` on this machine."""
    resolved = resolve(project.manifests_dir(), "llama-one-batch", "host", variants=["rvv-kernels"])
    target = select("host", machine=platform.machine(), has_vector=False)
    with Engine(project.state_dir()) as engine:
        provision = provide(resolved, target, engine, state_dir=project.state_dir(), progress=Silent())
        assert provision.kernels is not None
        sites = [ensure_site([wheel], folder, print) for wheel in (provision.plugin, provision.kernels)]
        yield Bench(engine, provision, *sites)


def without_library(kernels: Path, folder: Path) -> Path:
    """A copy of the kernels' package whose library is gone."""
    shutil.copytree(kernels, folder)
    (folder / "sgl_kernel" / "_ops.so").unlink()
    return folder
