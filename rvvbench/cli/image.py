"""`rvvbench image`: building, listing and verifying images."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape
from rich.table import Table

from rvvbench import project
from rvvbench.cli.console import TerminalProgress, err, out, print_json, progress
from rvvbench.errors import EnvironmentLacks, UsageError

if TYPE_CHECKING:
    from rvvbench.image.build import BuiltImage

app = typer.Typer(no_args_is_help=True, help="Build, list and verify the images that runs happen in.")

RECIPE = typer.Argument(help="Name of a recipe: runtime or toolchain.")
ARCH = typer.Option(None, "--arch", help="riscv64, amd64 or arm64; this machine's own if not given.")


def _arch(arch: str | None) -> str:
    from rvvbench.target.select import host_arch

    here = host_arch(platform.machine())
    if arch is not None and arch not in ("riscv64", "amd64", "arm64"):
        raise UsageError(f"unknown architecture {arch!r}", where="--arch", mend="riscv64, amd64 or arm64")
    return arch or here


@app.command("build", epilog="Example: rvvbench image build runtime --arch riscv64")
def build(
    recipe: str = RECIPE,
    arch: str | None = ARCH,
    if_missing: bool = typer.Option(False, "--if-missing", help="Do nothing when the image is here and verifies."),
    accept_expired: bool = typer.Option(
        False, "--accept-expired", help="Use the suite even when its Release file is past its date; recorded."
    ),
    accept_rebuilt: bool = typer.Option(
        False,
        "--accept-rebuilt",
        help="Go on when the locked package versions gave other bytes than the locked digest; records are marked.",
    ),
    write_lock: bool = typer.Option(False, "--lock", help="Write digest and versions into rvvbench.lock.yaml."),
    mirror: str | None = typer.Option(None, "--mirror", hidden=True),
    json_output: bool = typer.Option(False, "--json", help="Machine-readable output."),
) -> None:
    """Build an image from its recipe and import it into podman.

    When the Debian suite no longer serves the locked versions, the image is built from what it serves, a lock of this
    machine's own is written, and records made with the image are marked as relocked.
    """
    from rvvbench.engine.service import Engine
    from rvvbench.image import relock
    from rvvbench.image.build import build_image
    from rvvbench.image.recipe import load_recipe
    from rvvbench.manifest.lock import load_lock
    from rvvbench.workload.images import locked_packages, use_image

    manifests = project.manifests_dir()
    state_dir = project.state_dir()
    lock = load_lock(manifests)
    chosen = _arch(arch)
    declared = load_recipe(recipe)
    with progress() as shown, Engine(state_dir) as engine:
        engine.sweep()
        if if_missing:
            try:
                used = use_image(lock, recipe, chosen, engine=engine, state_dir=state_dir)
            except EnvironmentLacks:
                pass
            else:
                err.print(f"image {recipe} for {chosen} is here: {used.ref.digest}", style="dim", soft_wrap=True)
                return
        shown.phase(f"build {recipe} for {chosen}")
        built = build_image(
            declared,
            chosen,
            engine=engine,
            state_dir=state_dir,
            locked=None if write_lock else locked_packages(lock, recipe, chosen),
            accept_expired=accept_expired,
            mirror=mirror,
            progress=_follow(shown, f"{recipe} {chosen}"),
        )
    if write_lock:
        _lock(manifests, recipe, built)
        relock.forget(state_dir, recipe, chosen)
    elif built.locked is None or built.differences or built.is_unexplained:
        if built.is_unexplained and not accept_rebuilt:
            error = built.unexplained_error()
            raise type(error)(
                error.cause,
                where=error.where,
                mend="--accept-rebuilt uses it on this machine and marks every record; --lock makes it the locked one",
            )
        relock.write(state_dir, recipe, built)
    else:
        relock.forget(state_dir, recipe, chosen)
    _report(built, json_output)


def _follow(shown: TerminalProgress, title: str) -> Any:
    """The builder's progress (phase, line) as ours."""
    seen: set[str] = set()

    def follow(phase: str, line: str) -> None:
        # Phases of a build overlap; each gets one headline.
        if phase not in seen:
            seen.add(phase)
            shown.phase(f"{title}: {phase}")
        shown.line(line)

    return follow


def _lock(manifests: Path, recipe: str, built: BuiltImage) -> None:
    from rvvbench.image.recipe import load_recipe
    from rvvbench.manifest.lock import LockedImage, load_lock, save_lock

    lock_file = load_lock(manifests)
    images = {name: dict(entries) for name, entries in lock_file.lock.images.items()}
    images.setdefault(recipe, {})[built.arch] = LockedImage(
        digest=built.digest,
        recipe_sha256=built.recipe_sha256,
        suite=load_recipe(recipe).model.suite,
        packages=dict(built.packages),
    )
    save_lock(lock_file.path, lock_file.lock.model_copy(update={"images": images}))


def _report(built: BuiltImage, json_output: bool) -> None:
    data = {
        "name": built.name,
        "arch": built.arch,
        "digest": built.digest,
        "recipe_sha256": built.recipe_sha256,
        "packages": len(built.packages),
        "seconds_by_phase": dict(built.seconds_by_phase),
        "expiry_ignored": next((v for k, v in built.provenance.items() if k.endswith("expiry-ignored")), None),
        "differences": [{"name": d.name, "locked": d.locked, "served": d.served} for d in built.differences],
        "differs_from_lock": bool(built.differences) or built.is_unexplained,
    }
    if json_output:
        print_json(data)
        return
    total = sum(built.seconds_by_phase.values())
    out.print(f"{built.name}\n  digest {built.digest}\n  {len(built.packages)} packages, {total:.0f} s", soft_wrap=True)
    for phase, seconds in built.seconds_by_phase.items():
        out.print(f"  [dim]{seconds:7.1f} s  {escape(phase)}[/]")
    if data["expiry_ignored"]:
        out.print("  [yellow]the suite's Release file is past its date; accepted[/]")
    if built.differences:
        out.print(
            f"  [yellow]relocked:[/] the suite serves {len(built.differences)} other versions than the lock; "
            "records are marked"
        )
        table = Table(box=None, padding=(0, 2, 0, 2))
        for title in ("package", "locked", "served"):
            table.add_column(title)
        for difference in built.differences[:40]:
            table.add_row(difference.name, difference.locked or "-", difference.served or "-")
        out.print(table)
        if len(built.differences) > 40:
            out.print(f"  and {len(built.differences) - 40} more")
    elif built.is_unexplained:
        out.print(
            "  [yellow]relocked:[/] the locked versions gave other bytes than the locked digest; records are marked"
        )


@app.command("list", epilog="Example: rvvbench image list")
def list_(json_output: bool = typer.Option(False, "--json", help="Machine-readable output.")) -> None:
    """List the images that were built on this machine."""
    from rvvbench.engine.service import Engine
    from rvvbench.image.catalog import list_images

    with Engine(project.state_dir()) as engine:
        images = list_images(engine)
    if json_output:
        print_json([vars(image) for image in images])
        return
    if not images:
        out.print("no images yet; rvvbench image build runtime --arch riscv64")
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("recipe", "arch", "digest", "size", "packages", "name"):
        table.add_column(title, justify="right" if title in ("size", "packages") else "left")
    for image in images:
        size = f"{image.size_bytes / 1e9:.2f} GB"
        table.add_row(image.recipe, image.arch, image.digest[:19], size, str(image.packages), image.name or "-")
    out.print(table)


@app.command("verify", epilog="Example: rvvbench image verify runtime --arch riscv64")
def verify(recipe: str = RECIPE, arch: str | None = ARCH) -> None:
    """Check an image's digest and architecture against the lock, and what `uname -m` says inside."""
    from rvvbench.engine.service import Engine
    from rvvbench.manifest.lock import load_lock
    from rvvbench.workload.images import use_image

    state_dir = project.state_dir()
    with Engine(state_dir) as engine:
        used = use_image(load_lock(project.manifests_dir()), recipe, _arch(arch), engine=engine, state_dir=state_dir)
    against = "this machine's own lock (relocked)" if used.relocked else "the lock"
    out.print(
        f"[green]verified[/] {used.ref.name} {used.ref.digest} ({used.ref.arch}) against {against}", soft_wrap=True
    )
