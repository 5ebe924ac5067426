"""Everything pinned that a run needs, obtained and verified before the run starts. After this there is no network."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench import project
from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks, ManifestError
from rvvbench.manifest.lock import LockFile
from rvvbench.manifest.models import DebianSource, Eval, GitSource, Stack, Variant, WheelSource
from rvvbench.manifest.resolve import Resolved, resolved_commit
from rvvbench.manifest.source import Document
from rvvbench.progress import Progress
from rvvbench.provide.checkpoint import (
    CheckpointDir,
    PinnedFile,
    SyntheticModel,
    ensure_hub,
    ensure_synthetic,
    ensure_w8a8,
)
from rvvbench.provide.dataset import TaskData, ensure_dataset
from rvvbench.provide.kernels import Build, KernelWheel, build_kernels
from rvvbench.provide.plugin import PluginWheel, build_plugin
from rvvbench.provide.quantise import ALGORITHM as W8A8
from rvvbench.provide.site import Wheel, ensure_site, first_on_path
from rvvbench.provide.stack_wheels import DISTRIBUTIONS, Source, StackBuild, StackWheel, find_stack_wheel
from rvvbench.target.select import Target, host_arch
from rvvbench.workload import gsm8k
from rvvbench.workload.images import UsedImage, use_image


@dataclass(frozen=True)
class Provision:
    """What a run mounts. `sites` maps a variant to the folder that becomes `/rvvbench/site`.

    `w8a8` is the quantised form of `checkpoint`, None where no variant computes with it; `w8a8_pinned` tells whether
    the manifest has its hashes. `unlocked_files` are those of the checkpoint whose hash is recorded but stands in no
    lock. `data` is a task's. `inductor` is the wheel of rvv_inductor, None where no variant compiles.
    """

    image: UsedImage
    checkpoint: CheckpointDir
    plugin: PluginWheel
    kernels: KernelWheel | None
    sites: dict[str, Path]
    unlocked_files: tuple[str, ...] = ()
    stack_wheels: tuple[StackWheel, ...] = ()
    w8a8: CheckpointDir | None = None
    w8a8_pinned: bool = False
    data: TaskData | None = None
    inductor: PluginWheel | None = None

    def checkpoint_of(self, variant: Variant) -> CheckpointDir:
        """The checkpoint that `variant` loads."""
        if variant.linear != "w8a8":
            return self.checkpoint
        if self.w8a8 is None:
            raise ValueError(f"{variant.name} needs the quantised checkpoint, which was not provided")
        return self.w8a8

    @property
    def kernels_sha256(self) -> str | None:
        """Hash of the kernel library, None where no variant uses it."""
        return self.kernels.library_sha256 if self.kernels else None

    @property
    def notes(self) -> list[str]:
        """What a reader of the record must know."""
        notes = []
        if self.image.relocked is not None:
            count = len(self.image.relocked.differences)
            notes.append(f"image: relocked, {count} packages differ from the lock")
        if self.unlocked_files:
            share = f"{len(self.unlocked_files)} of {len(self.checkpoint.files)} files"
            notes.append(
                f"checkpoint: {share} have no hash in the lock; recorded is that of the download (rvvbench lock)"
            )
        if self.w8a8 is not None and not self.w8a8_pinned:
            notes.append(
                f"checkpoint_w8a8: nothing pins its files; recorded is what {W8A8} made of the checkpoint's files"
            )
        if self.data is not None and self.data.unlocked:
            files = ", ".join(self.data.unlocked)
            notes.append(f"data set: {files}: no hash in the lock; recorded is that of the download (rvvbench lock)")
        return notes

    def pins(self) -> dict[str, Any]:
        """Every hash that the run stands on, as JSON data."""
        kernels = None
        if self.kernels is not None:
            kernels = {
                "key": self.kernels.key,
                "wheel_sha256": self.kernels.sha256,
                "library_sha256": self.kernels.library_sha256,
                "compiler": self.kernels.compiler,
            }
        pins = {
            "image": {"name": self.image.ref.name, "arch": self.image.ref.arch, "digest": self.image.ref.digest},
            "packages": self.image.packages,
            "checkpoint": {"kind": self.checkpoint.kind, "files": self.checkpoint.sha256s},
            "plugin": {"version": self.plugin.version, "wheel_sha256": self.plugin.sha256},
            "kernels": kernels,
        }
        if self.inductor is not None:
            pins["inductor"] = {"version": self.inductor.version, "wheel_sha256": self.inductor.sha256}
        if self.w8a8 is not None:
            pins["checkpoint_w8a8"] = {"algorithm": W8A8, "files": self.w8a8.sha256s}
        if self.stack_wheels:
            pins["built"] = {
                wheel.part: {
                    "url": wheel.url,
                    "commit": wheel.commit,
                    "key": wheel.key,
                    "wheel_sha256": wheel.sha256,
                    "compiler": wheel.compiler,
                    "environment": dict(wheel.environment),
                }
                for wheel in self.stack_wheels
            }
        if self.data is not None:
            pins["dataset"] = self.data.pins()
        return pins


def provide(
    resolved: Resolved,
    target: Target,
    engine: Engine,
    *,
    state_dir: Path,
    progress: Progress,
    data: TaskData | None = None,
) -> Provision:
    """Verify the image, obtain checkpoint and data set, build what is ours. Raises before a run if a pin does not hold.

    `data` is what a task is to take instead of the data set that its manifest pins.
    """
    data = data or _dataset(resolved, state_dir, progress)
    progress.phase("image")
    image = use_image(resolved.lock, resolved.stack.image, target.arch, engine=engine, state_dir=state_dir)
    check_stack(resolved, image)
    built = built_wheels(resolved, StackBuild(target.arch, image.ref, engine, state_dir))
    progress.phase(f"checkpoint {resolved.model.title} ({resolved.experiment.weights})")
    checkpoint = _checkpoint(resolved, state_dir, progress)
    w8a8 = w8a8_checkpoint(resolved, checkpoint, progress)
    kernels = None
    if any(variant.uses_kernels for variant in resolved.variants):
        kernels = kernels_for(
            resolved.stack, target.arch, resolved.lock, engine, state_dir=state_dir, progress=progress, image=image
        )
    python = project.root() / "kernels" / "python"
    plugin = build_plugin(python / "sglang_rvv", state_dir / "kernels" / "plugin")
    inductor = None
    if any(variant.compiles for variant in resolved.variants):
        inductor = build_plugin(python / "rvv_inductor", state_dir / "kernels" / "inductor")
    sites = {}
    for variant in resolved.variants:
        wheels: list[Wheel] = [plugin, *([inductor] if inductor and variant.compiles else [])]
        wheels += [kernels] if kernels and variant.uses_kernels else []
        if built:
            # The image has a PyTorch and an SGLang of its own.
            wheels = [*built, first_on_path(state_dir / "wheels" / "first"), *wheels]
        sites[variant.name] = ensure_site(wheels, state_dir / "sites", progress.line)
    return Provision(
        image,
        checkpoint,
        plugin,
        kernels,
        sites,
        unlocked_files(resolved, checkpoint),
        built,
        w8a8,
        w8a8_pins(resolved) is not None,
        data,
        inductor,
    )


def git_sources(stack: Stack, places: Document, lock: LockFile) -> list[Source]:
    """The parts of a stack that are built from git, at the commits that manifest or lock pin.

    Raises ManifestError as `resolved_commit` does, and where the lock pins another repository or branch.
    """
    sources = []
    for part in DISTRIBUTIONS:
        source = getattr(stack, part)
        if not isinstance(source, GitSource):
            continue
        name = f"{stack.name}/{part}"
        locked = lock.lock.git.get(name)
        if locked is not None and (locked.url, locked.branch) != (source.url, source.branch):
            raise ManifestError(
                f"the stack builds {part} from branch {source.branch} of {source.url}, but the lock has branch "
                f"{locked.branch} of {locked.url}",
                where=lock.document.where(("git", name)),
                mend="rvvbench lock",
            )
        commit = resolved_commit(stack, places, lock, part)
        sources.append(Source(part, source.url, source.branch, commit))
    return sources


def built_wheels(resolved: Resolved, build: StackBuild) -> tuple[StackWheel, ...]:
    """The wheels of the stack's git sources, which `rvvbench build` has made before: a run does not wait for hours.

    Raises EnvironmentLacks for one that is not here, ManifestError for variants that cannot run with them.
    """
    sources = git_sources(resolved.stack, resolved.stack_document, resolved.lock)
    if any(source.part == "pytorch" for source in sources):
        for index, variant in enumerate(resolved.variants):
            if variant.uses_kernels:
                raise ManifestError(
                    f"the variant {variant.name!r} uses kernels, which are compiled against the image's PyTorch and "
                    f"not against the one that stack {resolved.stack.name!r} builds",
                    where=resolved.experiment_document.where(("variants", index)),
                    mend="choose variants without kernels (`--variant torch-native`), or the stack debian-rvv",
                )
    found = []
    for source in sources:
        wheel = find_stack_wheel(build, source)
        if wheel is None:
            raise EnvironmentLacks(
                f"{source.distribution} of {source.url} at {source.commit[:12]} was not built for {build.arch} with "
                f"the image {build.image.digest[:19]} and the build variables that are set now",
                where=resolved.stack_document.where((source.part,)),
                mend=f"rvvbench build --stack {resolved.stack.name} --arch {build.arch}",
            )
        found.append(wheel)
    return tuple(found)


def unlocked_files(resolved: Resolved, checkpoint: CheckpointDir) -> tuple[str, ...]:
    """Files of a Hub checkpoint that the lock has no hash of; a synthetic one is pinned whole by its manifest."""
    if checkpoint.kind == "synthetic":
        return ()
    locked = resolved.lock.lock.models[resolved.model.name].files
    return tuple(sorted(name for name in checkpoint.files if locked.get(name) is None))


def kernels_for(
    stack: Stack,
    arch: str,
    lock: LockFile,
    engine: Engine,
    *,
    state_dir: Path,
    progress: Progress,
    image: UsedImage | None = None,
) -> KernelWheel:
    """The kernel wheel of this source tree for `arch`; built in the toolchain image unless its key is here already."""
    progress.phase(f"kernels for {arch}")
    build = kernel_build(stack, arch, lock, engine, state_dir=state_dir, image=image)
    return build_kernels(build, progress.line)


def kernel_build(
    stack: Stack, arch: str, lock: LockFile, engine: Engine, *, state_dir: Path, image: UsedImage | None = None
) -> Build:
    """What compiles `kernels/` of this checkout for `arch` with the images of `stack`; `image`: the runtime one.

    Raises EnvironmentLacks where an image was not built here.
    """
    runtime = image or use_image(lock, stack.image, arch, engine=engine, state_dir=state_dir)
    toolchain = use_image(lock, stack.toolchain, host_arch(platform.machine()), engine=engine, state_dir=state_dir)
    return Build(arch, project.root() / "kernels", engine, toolchain.ref, runtime.ref, state_dir)


def check_stack(resolved: Resolved, image: UsedImage) -> None:
    """The stack's pins against what the image was made of; raises ManifestError at the pin that does not hold."""
    stack, places = resolved.stack, resolved.stack_document
    if isinstance(stack.pytorch, DebianSource):
        built = image.packages.get(stack.pytorch.package)
        if built != stack.pytorch.version and image.relocked is None:
            raise ManifestError(
                f"the stack pins {stack.pytorch.package} {stack.pytorch.version}, the image has {built}",
                where=places.where(("pytorch", "version")),
                mend="correct the version, or build and lock the image again",
            )
    if isinstance(stack.sglang, WheelSource):
        found = {wheel.file: wheel.sha256 for wheel in image.recipe.model.wheels}
        built = found.get(stack.sglang.filename)
        if built != stack.sglang.sha256:
            raise ManifestError(
                f"the stack pins {stack.sglang.filename} sha256 {stack.sglang.sha256}, the image recipe has {built}",
                where=places.where(("sglang", "sha256")),
                mend=f"make {image.recipe.path} and the stack agree",
            )


def w8a8_pins(resolved: Resolved) -> dict[str, PinnedFile] | None:
    """What the manifest says of the quantised checkpoint's files; None where it says nothing, as for Hub weights."""
    synthetic = resolved.model.synthetic
    if resolved.experiment.weights != "synthetic" or synthetic is None or synthetic.w8a8 is None:
        return None
    return {name: PinnedFile(file.sha256, file.size) for name, file in synthetic.w8a8.files.items()}


def w8a8_checkpoint(resolved: Resolved, checkpoint: CheckpointDir, progress: Progress) -> CheckpointDir | None:
    """The quantised form of `checkpoint`; None where no variant computes with it.

    Raises ManifestError at the pin that does not hold, and what `ensure_w8a8` raises.
    """
    if all(variant.linear != "w8a8" for variant in resolved.variants):
        return None
    progress.phase(f"checkpoint {resolved.model.title} ({W8A8})")
    places = resolved.model_document
    return ensure_w8a8(
        checkpoint,
        w8a8_pins(resolved),
        progress=_told(progress),
        where=lambda name: places.where(("synthetic", "w8a8", "files", name, "sha256")),
    )


def _told(progress: Progress) -> Callable[[int, int], None]:
    """Tells of bytes done and bytes in all."""
    return lambda done, total: progress.line(f"{done / 1e6:,.0f} of {total / 1e6:,.0f} MB")


def _dataset(resolved: Resolved, state_dir: Path, progress: Progress) -> TaskData | None:
    """The pinned data of a task, known to be enough for it; None where there is no task."""
    workload, dataset, lock = resolved.experiment.workload, resolved.dataset, resolved.lock
    if not isinstance(workload, Eval) or dataset is None:
        return None
    progress.phase(f"data set {dataset.title}")
    data = ensure_dataset(
        dataset.hub.repo,
        dataset.hub.revision,
        (dataset.splits.train, dataset.splits.test),
        lock.lock.datasets[dataset.name].files,
        state_dir / "datasets" / f"{dataset.name}-hub-{dataset.hub.revision[:12]}",
        progress=lambda done, total: progress.line(f"{done / 1e6:,.1f} of {total / 1e6:,.1f} MB"),
        where=lambda name: lock.document.where(("datasets", dataset.name, "files", name)),
    )
    gsm8k.task(data, workload.shots, workload.questions)
    return data


def _checkpoint(resolved: Resolved, state_dir: Path, progress: Progress) -> CheckpointDir:
    model, places = resolved.model, resolved.model_document
    folder = state_dir / "checkpoints"

    if resolved.experiment.weights == "synthetic":
        if model.synthetic is None:
            raise ManifestError(
                f"model {model.name!r} has no synthetic weights",
                where=resolved.experiment_document.where(("weights",)),
                mend="--weights hub",
            )
        files = {name: PinnedFile(file.sha256, file.size) for name, file in model.synthetic.files.items()}
        return ensure_synthetic(
            SyntheticModel(model.name, model.config, model.synthetic.algorithm, model.synthetic.seed, files),
            folder / f"{model.name}-synthetic-{model.synthetic.seed}",
            progress=_told(progress),
            where=lambda name: places.where(("synthetic", "files", name, "sha256")),
        )
    if model.hub is None:
        raise ManifestError(
            f"model {model.name!r} is not on the Hub",
            where=resolved.experiment_document.where(("weights",)),
            mend="--weights synthetic",
        )
    locked = resolved.lock.lock.models[model.name]
    return ensure_hub(
        model.hub.repo,
        model.hub.revision,
        locked.files,
        folder / f"{model.name}-hub-{model.hub.revision[:12]}",
        progress=_told(progress),
        where=lambda name: resolved.lock.document.where(("models", model.name, "files", name)),
    )
