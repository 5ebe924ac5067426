"""`rvvbench lock`: resolve what manifests name, or find where lock and world have parted."""

from __future__ import annotations

import typer
from rich.markup import escape

from rvvbench import project
from rvvbench.cli.console import out, print_json, progress
from rvvbench.errors import CheckFailed


def lock(
    check: bool = typer.Option(False, "--check", help="Change nothing; find drift. Exit code 1 when there is some."),
    update: bool = typer.Option(False, "--update", help="Ask again for branches that have a commit already."),
    offline: bool = typer.Option(False, "--offline", help="Ask no network: only bring lock and manifests together."),
    images: bool = typer.Option(
        False, "--images", help="Lock the images that this machine built from today's recipes."
    ),
    json_output: bool = typer.Option(False, "--json", help="Machine-readable output."),
) -> None:
    """Resolve branches to commits and Hub revisions to file hashes, and write rvvbench.lock.yaml.

    Image digests enter the lock through `rvvbench image build RECIPE --lock`, or, for images that are built already,
    through `--images`.
    """
    from rvvbench.image import relock
    from rvvbench.manifest.drift import drifts, updated, wanted
    from rvvbench.manifest.lock import load_lock, save_lock
    from rvvbench.provide.dataset import dataset_kind
    from rvvbench.provide.git import resolve_branch
    from rvvbench.provide.hub_files import resolve_files
    from rvvbench.workload.locking import Unresolved, adopt_images, moved_branches, recipe_hashes, resolve_online

    manifests = project.manifests_dir()
    lock_file = load_lock(manifests)
    want = wanted(manifests)
    if check:
        found = drifts(lock_file, want, recipe_hashes())
        unasked: list[Unresolved] = []
        if not offline:
            with progress() as shown:
                shown.phase("branches")
                moved, unasked = moved_branches(lock_file, resolve_branch)
            found += moved
        failures = [drift for drift in found if drift.kind != "unresolved"]
        if json_output:
            print_json({"drift": [vars(drift) for drift in found], "not_asked": [vars(item) for item in unasked]})
        else:
            for drift in found:
                colour = "yellow" if drift.kind == "unresolved" else "red"
                out.print(
                    f"[{colour}]{drift.kind}[/]  {escape(drift.what)}: {escape(drift.text)}  "
                    f"[dim]{escape(drift.where)}[/]",
                    soft_wrap=True,
                )
            for item in unasked:
                out.print(f"[yellow]not asked[/]  {escape(item.what)}: {escape(item.reason)}", soft_wrap=True)
            if not failures:
                out.print("[green]no drift[/]: lock, manifests and recipes agree")
        if failures:
            raise CheckFailed(
                f"the lock drifted in {len(failures)} places",
                where=str(lock_file.path),
                mend="rvvbench lock (pins of manifests), rvvbench image build RECIPE --lock (images)",
            )
        return
    fresh = updated(lock_file.lock, want)
    adopted: list[str] = []
    if images:
        fresh, adopted = adopt_images(fresh, project.state_dir())
    unresolved: list[Unresolved] = []
    if not offline:
        with progress() as shown:
            fresh, unresolved = resolve_online(
                fresh,
                branch=resolve_branch,
                files=resolve_files,
                dataset_files=lambda repo, revision, names: resolve_files(repo, revision, kind=dataset_kind(names)),
                update=update,
                progress=shown,
            )
    changed = fresh != lock_file.lock
    if changed:
        save_lock(lock_file.path, fresh)
    for entry in adopted:
        relock.forget(project.state_dir(), *entry.split()[:2])
    if json_output:
        print_json(
            {
                "path": str(lock_file.path),
                "changed": changed,
                "images": adopted,
                "unresolved": [vars(item) for item in unresolved],
            }
        )
        return
    out.print(f"{lock_file.path}: {'written' if changed else 'nothing to change'}", soft_wrap=True)
    for entry in adopted:
        out.print(f"image {entry}", soft_wrap=True)
    for item in unresolved:
        out.print(f"[yellow]still null[/]  {escape(item.what)}: {escape(item.reason)}", soft_wrap=True)
