"""`rvvbench build`: what is compiled for a stack."""

from __future__ import annotations

import platform

import typer

from rvvbench import project
from rvvbench.cli.console import out, print_json, progress
from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.lock import load_lock
from rvvbench.manifest.models import GitSource, Stack


def build(
    stack: str = typer.Option("debian-rvv", "--stack", help="Name of a stack; see `rvvbench list`."),
    arch: str = typer.Option("riscv64", "--arch", help="riscv64 (cross-compiled), or this machine's own: host."),
    json_output: bool = typer.Option(False, "--json", help="Machine-readable output."),
) -> None:
    """Cross-compile `kernels/` in the toolchain image into a wheel keyed by sources, flags and compiler."""
    from rvvbench.engine.service import Engine
    from rvvbench.errors import UsageError
    from rvvbench.target.select import host_arch
    from rvvbench.workload.provision import kernels_for

    manifests = project.manifests_dir()
    declared, document = load_manifest(manifests, "stacks", stack, Stack)
    for part in ("pytorch", "sglang"):
        if isinstance(getattr(declared, part), GitSource):
            raise UsageError(
                f"stack {stack!r} builds {part} from git, which this version cannot do yet",
                where=document.where((part,)),
                mend="rvvbench build --stack debian-rvv",
            )
    here = host_arch(platform.machine())
    wanted = here if arch == "host" else arch
    if wanted not in ("riscv64", here):
        raise typer.BadParameter(f"{arch!r} is none of riscv64, host", param_hint="--arch")
    state_dir = project.state_dir()
    with progress() as shown, Engine(state_dir) as engine:
        engine.sweep()
        wheel = kernels_for(declared, wanted, load_lock(manifests), engine, state_dir=state_dir, progress=shown)
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
        return
    for name, value in data.items():
        out.print(f"{name:15} {value}", soft_wrap=True)
