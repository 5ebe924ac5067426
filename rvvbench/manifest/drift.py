"""Where lock and manifests no longer say the same. Pure: asks no network and no image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rvvbench.manifest.load import load_manifest, names
from rvvbench.manifest.lock import Lock, LockedGit, LockedModel, LockedWheel, LockFile
from rvvbench.manifest.models import Dataset, GitSource, Model, Stack, WheelSource


@dataclass(frozen=True)
class Drift:
    """One difference. `kind`: `changed`, `missing`, `unresolved`, `stale` or `moved`; only `unresolved` is fine."""

    kind: str
    what: str
    where: str
    text: str


@dataclass(frozen=True)
class Wanted:
    """What the manifests pin, in the lock's own terms, with null for what only the network can resolve."""

    git: Mapping[str, LockedGit]
    wheels: Mapping[str, LockedWheel]
    models: Mapping[str, LockedModel]
    datasets: Mapping[str, LockedModel] = field(default_factory=dict)


def wanted(manifests: Path) -> Wanted:
    """Collect the pins of all stacks, models and data sets; raises ManifestError as loading does."""
    git: dict[str, LockedGit] = {}
    wheels: dict[str, LockedWheel] = {}
    models: dict[str, LockedModel] = {}
    for name in names(manifests, "stacks"):
        stack, _ = load_manifest(manifests, "stacks", name, Stack)
        for part in ("pytorch", "sglang"):
            source = getattr(stack, part)
            if isinstance(source, GitSource):
                git[f"{name}/{part}"] = LockedGit(url=source.url, branch=source.branch, commit=source.commit)
            if isinstance(source, WheelSource):
                wheels[f"{name}/{part}"] = LockedWheel(filename=source.filename, sha256=source.sha256)
    for name in names(manifests, "models"):
        model, _ = load_manifest(manifests, "models", name, Model)
        if model.hub:
            models[name] = LockedModel(repo=model.hub.repo, revision=model.hub.revision)
    datasets: dict[str, LockedModel] = {}
    for name in names(manifests, "datasets"):
        dataset, _ = load_manifest(manifests, "datasets", name, Dataset)
        files = dict.fromkeys(sorted({dataset.splits.train, dataset.splits.test}))
        datasets[name] = LockedModel(repo=dataset.hub.repo, revision=dataset.hub.revision, files=files)
    return Wanted(git, wheels, models, datasets)


def updated(lock: Lock, want: Wanted) -> Lock:
    """The lock with every pin of the manifests; what was resolved before stays where its pin did not change."""
    git = {}
    for name, pin in want.git.items():
        old = lock.git.get(name)
        same = old is not None and (old.url, old.branch) == (pin.url, pin.branch)
        commit = pin.commit or (old.commit if old is not None and same else None)
        builds = old.builds if old is not None and same and old.commit == commit else {}
        git[name] = LockedGit(url=pin.url, branch=pin.branch, commit=commit, builds=builds)
    models = {name: _kept(lock.models.get(name), model) for name, model in want.models.items()}
    datasets = {name: _kept(lock.datasets.get(name), dataset) for name, dataset in want.datasets.items()}
    update = {"git": git, "wheels": dict(want.wheels), "models": models, "datasets": datasets}
    return lock.model_copy(update=update)


def _kept(before: LockedModel | None, wanted: LockedModel) -> LockedModel:
    """What was locked before, where its pin did not change."""
    return before if before is not None and _same(before, wanted) else wanted


def _same(locked: LockedModel, wanted: LockedModel) -> bool:
    """Whether both are one pin: the same revision and, where the manifest names files, the same ones."""
    files = not wanted.files or wanted.files.keys() == locked.files.keys()
    return (locked.repo, locked.revision) == (wanted.repo, wanted.revision) and files


def drifts(lock_file: LockFile, want: Wanted, recipes: Mapping[str, str]) -> list[Drift]:
    """Every difference. `recipes` maps image recipes to the sha256 of what they say today."""
    return [
        *_git(lock_file, want),
        *_wheels(lock_file, want),
        *_hub_files(lock_file, "model", lock_file.lock.models, want.models),
        *_hub_files(lock_file, "dataset", lock_file.lock.datasets, want.datasets),
        *_images(lock_file, recipes),
    ]


def _git(lock_file: LockFile, want: Wanted) -> Iterator[Drift]:
    locked = lock_file.lock.git
    for name, pin in want.git.items():
        where = lock_file.document.where(("git", name))
        entry = locked.get(name)
        if entry is None:
            yield Drift("missing", f"git {name}", where, "the lock does not have it")
        elif (entry.url, entry.branch) != (pin.url, pin.branch):
            yield Drift("changed", f"git {name}", where, f"the manifest says {pin.url} {pin.branch}")
        elif pin.commit and entry.commit and pin.commit != entry.commit:
            yield Drift("changed", f"git {name}", where, f"the manifest says commit {pin.commit}")
        elif not (pin.commit or entry.commit):
            where = lock_file.document.where(("git", name, "commit"))
            yield Drift("unresolved", f"git {name}", where, f"nobody resolved branch {pin.branch} of {pin.url} yet")
    for name in locked.keys() - want.git.keys():
        yield Drift("stale", f"git {name}", lock_file.document.where(("git", name)), "no stack has it any more")


def _wheels(lock_file: LockFile, want: Wanted) -> Iterator[Drift]:
    locked = lock_file.lock.wheels
    for name, pin in want.wheels.items():
        if locked.get(name) != pin:
            where = lock_file.document.where(("wheels", name))
            yield Drift("changed", f"wheel {name}", where, f"the manifest says {pin.filename} sha256 {pin.sha256}")
    for name in locked.keys() - want.wheels.keys():
        yield Drift("stale", f"wheel {name}", lock_file.document.where(("wheels", name)), "no stack has it any more")


def _hub_files(
    lock_file: LockFile, kind: str, locked: Mapping[str, LockedModel], want: Mapping[str, LockedModel]
) -> Iterator[Drift]:
    """Of models or data sets."""
    for name, pin in want.items():
        entry = locked.get(name)
        where = lock_file.document.where((f"{kind}s", name))
        if entry is None:
            yield Drift("missing", f"{kind} {name}", where, "the lock does not have it")
        elif not _same(entry, pin):
            files = f" with {', '.join(pin.files)}" if pin.files else ""
            yield Drift("changed", f"{kind} {name}", where, f"the manifest says {pin.repo} at {pin.revision}{files}")
        elif not entry.files or None in entry.files.values():
            yield Drift("unresolved", f"{kind} {name}", where, f"nobody resolved the file hashes of {pin.repo} yet")
    for name in locked.keys() - want.keys():
        where = lock_file.document.where((f"{kind}s", name))
        yield Drift("stale", f"{kind} {name}", where, "no manifest has it any more")


def _images(lock_file: LockFile, recipes: Mapping[str, str]) -> Iterator[Drift]:
    for recipe, sha256 in recipes.items():
        images = lock_file.lock.images.get(recipe, {})
        if not images:
            where = lock_file.document.where(("images",))
            yield Drift("missing", f"image {recipe}", where, "the lock has no digest of it")
        for arch, image in images.items():
            if image.recipe_sha256 != sha256:
                where = lock_file.document.where(("images", recipe, arch, "recipe_sha256"))
                yield Drift("changed", f"image {recipe} {arch}", where, f"the recipe has sha256 {sha256} today")
