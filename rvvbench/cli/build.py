"""`rvvbench build`: what is compiled for a stack."""

from __future__ import annotations

import platform
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from rvvbench import project
from rvvbench.cli.console import err, out, print_json, progress
from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.lock import LockedBuild, load_lock, save_lock
from rvvbench.manifest.models import Stack
from rvvbench.provide.build_settings import ALLOWED

if TYPE_CHECKING:
    from rvvbench.provide.kernels import KernelWheel
    from rvvbench.provide.stack_wheels import StackWheel

STACK_HELP = (
    "Name of a stack; see `rvvbench list`. Where its PyTorch and SGLang are from git, these variables reach their "
    f"builds and keys: {', '.join(ALLOWED)}; and MAX_JOBS, which is in no key, says how many compilers run at once."
)


def build(
    stack: str = typer.Option("debian-rvv", "--stack", help=STACK_HELP),
    arch: str = typer.Option("riscv64", "--arch", help="riscv64, or this machine's own: host."),
    write_lock: bool = typer.Option(
        False, "--lock", help="Write keys and hashes of the wheels into rvvbench.lock.yaml."
    ),
    json_output: bool = typer.Option(False, "--json", help="Machine-readable output."),
) -> None:
    """Compile what a stack is made of into wheels, each keyed by all that goes into it.

    A stack of packages: `kernels/`, cross-compiled in the toolchain image (two minutes). A stack with git sources:
    PyTorch and SGLang at their locked commits, built inside the stack's image for ARCH, under emulation where this
    machine is of another kind; PyTorch takes hours on a board. What was built before is taken again by its key.

    The lock's keys of git wheels stand beside the commits that they are of. Its key of the kernels is that of the
    source tree it was written from, so another tree has another one, which is no error: the commit of this project
    pins the sources, and every record pins the key.
    """
    from rvvbench.engine.service import Engine
    from rvvbench.provide.stack_wheels import StackBuild, build_stack_wheel
    from rvvbench.target.select import host_arch
    from rvvbench.workload.images import use_image
    from rvvbench.workload.locking import other_bytes, with_builds, with_kernels
    from rvvbench.workload.provision import git_sources, kernels_for

    manifests = project.manifests_dir()
    lock = load_lock(manifests)
    declared, document = load_manifest(manifests, "stacks", stack, Stack)
    sources = git_sources(declared, document, lock)
    here = host_arch(platform.machine())
    wanted = here if arch == "host" else arch
    if wanted not in ("riscv64", here):
        raise typer.BadParameter(f"{arch!r} is none of riscv64, host", param_hint="--arch")
    state_dir = project.state_dir()
    with progress() as shown, Engine(state_dir) as engine:
        engine.sweep()
        if not sources:
            wheel = kernels_for(declared, wanted, lock, engine, state_dir=state_dir, progress=shown)
            made = LockedBuild(key=wheel.key, filename=wheel.path.name, sha256=wheel.sha256)
            _note(other_bytes(lock.lock.kernels.get(wanted), made))
            fresh = with_kernels(lock.lock, wanted, made)
        else:
            shown.phase(f"image {declared.image} for {wanted}")
            image = use_image(lock, declared.image, wanted, engine=engine, state_dir=state_dir)
            build = StackBuild(wanted, image.ref, engine, state_dir)
            wheels = [build_stack_wheel(build, source, shown) for source in sources]
            builds = [LockedBuild(key=w.key, filename=w.path.name, sha256=w.sha256) for w in wheels]
            for source, entry in zip(sources, builds, strict=True):
                locked = lock.lock.git.get(f"{stack}/{source.part}")
                _note(other_bytes(locked.builds.get(wanted) if locked else None, entry))
            fresh = with_builds(lock.lock, stack, wanted, zip(sources, builds, strict=True))
    if write_lock and fresh != lock.lock:
        save_lock(lock.path, fresh)
    if not sources:
        _print_kernels(wheel, json_output)
    else:
        _print_wheels(wheels, json_output)


def _note(sentence: str | None) -> None:
    if sentence is not None:
        err.print(f"[yellow]other bytes[/]  {escape(sentence)}", soft_wrap=True)


def _print_kernels(wheel: KernelWheel, json_output: bool) -> None:
    data = {
        "wheel": str(wheel.path),
        "key": wheel.key,
        "sha256": wheel.sha256,
        "library_sha256": wheel.library_sha256,
        "compiler": wheel.compiler,
        "log": str(wheel.build_log),
    }
    if json_output:
        print_json(data)
    else:
        _print_rows(data)


def _print_wheels(wheels: list[StackWheel], json_output: bool) -> None:
    if json_output:
        print_json(
            {
                "wheels": [
                    {**asdict(wheel), "path": str(wheel.path), "build_log": str(wheel.build_log)} for wheel in wheels
                ]
            }
        )
        return
    for wheel in wheels:
        _print_rows(
            {
                "wheel": str(wheel.path),
                "source": f"{wheel.url} at {wheel.commit}",
                "key": wheel.key,
                "sha256": wheel.sha256,
                "built in": f"{wheel.seconds:.1f} s",
                "compiler": wheel.compiler,
                "log": str(wheel.build_log),
            }
        )
        for line in wheel.newer_than_declared:
            out.print(f"[yellow]newer than the project says[/]  {escape(line)}", soft_wrap=True)
        if wheel.other_sha256:
            out.print(
                f"[yellow]other bytes[/]  an earlier build of this key had sha256 {wheel.other_sha256}", soft_wrap=True
            )


def _print_rows(data: dict[str, str]) -> None:
    for name, value in data.items():
        out.print(f"{name:15} {escape(value)}", soft_wrap=True)
