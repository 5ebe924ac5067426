"""One fresh process in its own container: what is mounted, what is waited for, what it leaves."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench.cache.compiler import SCRIPT, WRAPPER
from rvvbench.engine.container import ContainerExit, ContainerSpec, Mount, run_container
from rvvbench.engine.service import Engine
from rvvbench.manifest.models import Variant
from rvvbench.manifest.resolve import Resolved
from rvvbench.progress import Progress
from rvvbench.project import writing
from rvvbench.target.select import Target
from rvvbench.workload.follow import Told, following
from rvvbench.workload.provision import Provision
from rvvbench.workload.spec import CACHE_PATH, EVENTS_NAME, variant_environment

RUNNER = Path(__file__).resolve().parent.parent / "runner"

Observe = Callable[[int], AbstractContextManager[None]]
"""Watches the container with this process id, on this machine, while the body runs."""


@dataclass(frozen=True)
class Place:
    """Where processes run and what they are given."""

    resolved: Resolved
    target: Target
    provision: Provision
    engine: Engine
    progress: Progress


def run_process(
    place: Place,
    variant: Variant,
    spec: Mapping[str, Any],
    folder: Path,
    *,
    told: Told,
    observe: Observe | None,
    cache: Path | None = None,
) -> ContainerExit:
    """Run the process that `spec` describes to its end; its events and logs stay in `folder`.

    `told` says of an event what a person who waits should read. `cache` is the directory that a compiler may write to.
    """
    out = folder / "out"
    out.mkdir(parents=True)
    spec_dir = folder / "spec"
    spec_dir.mkdir()
    (spec_dir / "spec.json").write_text(json.dumps(spec, indent=1) + "\n", encoding="utf-8")
    with _runner_package(folder) as runner:
        container = ContainerSpec(
            image=place.provision.image.reference,
            command=("python3", "-m", "rvvbench_runner", str(spec["kind"]), "/rvvbench/spec/spec.json"),
            mounts=(
                Mount(runner, "/rvvbench/runner"),
                Mount(place.provision.sites[variant.name], "/rvvbench/site"),
                Mount(place.provision.checkpoint_of(variant).path, "/rvvbench/model"),
                Mount(spec_dir, "/rvvbench/spec"),
                Mount(out, "/rvvbench/out", writable=True),
                *([] if cache is None else [Mount(cache, CACHE_PATH, writable=True)]),
            ),
            env=variant_environment(place.resolved, place.target, variant),
            network="none",
            memory_bytes=place.resolved.board.memory_limit_bytes,
            cpuset=place.resolved.board.cpus,
            log_path=folder / "log.txt",
            timeout_s=place.resolved.experiment.timeouts_s.process,
            run_id=str(spec["run_id"]),
            shm_bytes=1 << 30,
        )
        with following(out / EVENTS_NAME, told, place.progress):
            return run_container(place.engine, container, observe=observe)


def problems(ended: ContainerExit, resolved: Resolved) -> Iterator[str]:
    """What a reader of the record must know of how a container ran, beyond its events."""
    if ended.memory is not None and ended.memory.limit_bytes is None:
        yield f"the memory limit of {resolved.board.memory_limit_bytes} bytes was not in force: {ended.memory.reason}"
    if ended.timed_out:
        yield f"killed after {resolved.experiment.timeouts_s.process:.0f} s (timeouts_s.process)"
    if ended.oom_killed:
        yield "killed for want of memory"


@contextmanager
def _runner_package(folder: Path) -> Iterator[Path]:
    """The runner as a package of the name that it has inside, without byte-code of this machine's Python; beside it the
    wrapper of the compiler.
    """
    package = folder / "runner"
    try:
        with writing(package):
            _copy_tree(RUNNER, package / "rvvbench_runner")
            wrapper = package / Path(WRAPPER).relative_to("/rvvbench/runner")
            wrapper.parent.mkdir()
            wrapper.write_text(SCRIPT, encoding="utf-8")
            wrapper.chmod(0o755)
        yield package
    finally:
        shutil.rmtree(package, ignore_errors=True)


def _copy_tree(source: Path, target: Path) -> None:
    """Python files only, stopping at the first that cannot be written: `shutil.copytree` would try them all."""
    target.mkdir(parents=True)
    for file in sorted(source.glob("*.py")):
        shutil.copyfile(file, target / file.name)
