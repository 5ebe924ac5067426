"""Resolving what only the network knows: branches to commits, Hub revisions to file hashes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rvvbench.errors import RvvbenchError
from rvvbench.image import relock
from rvvbench.image.recipe import load_recipe
from rvvbench.manifest.drift import Drift
from rvvbench.manifest.lock import Lock, LockedBuild, LockedGit, LockedImage, LockFile
from rvvbench.progress import Progress
from rvvbench.provide.stack_wheels import Source

ResolveBranch = Callable[[str, str], str]
ResolveFiles = Callable[[str, str], Mapping[str, str]]
ResolveNamedFiles = Callable[[str, str, Collection[str]], Mapping[str, str]]
RECIPES = ("runtime", "toolchain")


@dataclass(frozen=True)
class Unresolved:
    """Something that stays null, and why."""

    what: str
    reason: str


def recipe_hashes() -> dict[str, str]:
    """sha256 of every recipe as it stands today."""
    return {name: load_recipe(name).sha256 for name in RECIPES}


def adopt_images(lock: Lock, state_dir: Path) -> tuple[Lock, list[str]]:
    """The lock with every image that this machine built from today's recipes; names of those that changed it."""
    images = {name: dict(entries) for name, entries in lock.images.items()}
    adopted: list[str] = []
    for name in RECIPES:
        recipe = load_recipe(name)
        for arch, local in relock.read(state_dir).images.get(name, {}).items():
            if local.recipe_sha256 != recipe.sha256:
                continue
            images.setdefault(name, {})[arch] = LockedImage(
                digest=local.digest,
                recipe_sha256=local.recipe_sha256,
                suite=recipe.model.suite,
                packages=dict(local.packages),
            )
            adopted.append(f"{name} {arch} {local.digest}")
    return lock.model_copy(update={"images": images}), adopted


def with_builds(lock: Lock, stack: str, arch: str, built: Iterable[tuple[Source, LockedBuild]]) -> Lock:
    """The lock with what was built of a stack's git sources for `arch`, beside their commits."""
    git = dict(lock.git)
    for source, build in built:
        name = f"{stack}/{source.part}"
        old = git.get(name)
        others = old.builds if old is not None and old.commit == source.commit else {}
        git[name] = LockedGit(
            url=source.url, branch=source.branch, commit=source.commit, builds={**others, arch: build}
        )
    return lock.model_copy(update={"git": git})


def with_kernels(lock: Lock, arch: str, build: LockedBuild) -> Lock:
    """The lock with the wheel of the kernels for `arch`."""
    return lock.model_copy(update={"kernels": {**lock.kernels, arch: build}})


def other_bytes(locked: LockedBuild | None, built: LockedBuild) -> str | None:
    """A sentence where a build of the locked key gave other bytes than the locked ones."""
    if locked is None or locked.key != built.key or locked.sha256 == built.sha256:
        return None
    return f"{built.filename}: sha256 {built.sha256[:16]}, the lock has {locked.sha256[:16]} for the same key"


def resolve_online(
    lock: Lock,
    *,
    branch: ResolveBranch,
    files: ResolveFiles,
    dataset_files: ResolveNamedFiles,
    update: bool,
    progress: Progress,
) -> tuple[Lock, list[Unresolved]]:
    """Fill in every null; with `update`, ask again for commits that are known. What cannot be reached stays as it is.

    `branch(url, branch)` gives a 40-hex commit, `files(repo, revision)` of a model and `dataset_files(repo, revision,
    names)` give file -> sha256; all raise RvvbenchError.
    """
    unresolved: list[Unresolved] = []
    git: dict[str, LockedGit] = {}
    for name, pin in lock.git.items():
        git[name] = pin
        if pin.commit is not None and not update:
            continue
        progress.phase(f"{name}: branch {pin.branch} of {pin.url}")
        try:
            commit = branch(pin.url, pin.branch)
            git[name] = pin.model_copy(update={"commit": commit, "builds": pin.builds if commit == pin.commit else {}})
        except RvvbenchError as error:
            unresolved.append(Unresolved(f"git {name}", error.cause))
    models, datasets = dict(lock.models), dict(lock.datasets)
    for kind, entries in (("model", models), ("dataset", datasets)):
        for name, entry in entries.items():
            if entry.files and None not in entry.files.values():
                continue
            progress.phase(f"{name}: files of {entry.repo}")
            try:
                if kind == "model":
                    found = files(entry.repo, entry.revision)
                else:
                    found = dataset_files(entry.repo, entry.revision, entry.files)
                entries[name] = entry.model_copy(update={"files": dict(sorted(found.items()))})
            except RvvbenchError as error:
                unresolved.append(Unresolved(f"{kind} {name}", error.cause))
    return lock.model_copy(update={"git": git, "models": models, "datasets": datasets}), unresolved


def moved_branches(lock_file: LockFile, branch: ResolveBranch) -> tuple[list[Drift], list[Unresolved]]:
    """Locked commits that are no longer the head of their branch, and branches that could not be asked."""
    moved: list[Drift] = []
    unresolved: list[Unresolved] = []
    for name, pin in lock_file.lock.git.items():
        if pin.commit is None:
            continue
        try:
            head = branch(pin.url, pin.branch)
        except RvvbenchError as error:
            unresolved.append(Unresolved(f"git {name}", error.cause))
            continue
        if head != pin.commit:
            where = lock_file.document.where(("git", name, "commit"))
            moved.append(Drift("moved", f"git {name}", where, f"branch {pin.branch} is at {head} now"))
    return moved, unresolved
