"""Building an image: resolve, fetch, put together, import, verify."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from rvvbench.engine.binfmt import require_emulator
from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError
from rvvbench.image import mmdebstrap, oci, wheels
from rvvbench.image.mmdebstrap import MissingPackage, Progress, Source
from rvvbench.image.names import LABEL, host_arch
from rvvbench.image.recipe import Recipe
from rvvbench.image.suite import Difference, differences, parse_simulation, parse_status
from rvvbench.image.verify import ImageRef, check_inside, look_up
from rvvbench.project import writing
from rvvbench.provide.file_hash import exclusive

# What runs natively while a foreign root filesystem is put together, see images/hooks/extract.sh.
TWIN_PACKAGES = (
    "dpkg", "tar", "gzip", "dash", "coreutils", "sed", "grep", "findutils", "debianutils", "perl-base", "openssl",
    "python3-minimal",
)  # fmt: skip

# For a root filesystem that is extracted only; hooks/customize.sh does it for one that is configured.
FORGET_MIRROR = 'cd "$1/etc" && rm -f apt/sources.list apt/apt.conf.d/99mmdebstrap hostname resolv.conf'


@dataclass(frozen=True)
class LockedPackages:
    """What the lock file says of an image. `where` is the file:line of its entry."""

    packages: Mapping[str, str]
    digest: str | None
    where: str | None = None


@dataclass(frozen=True)
class BuiltImage:
    """An image that was built, imported and verified.

    `packages`: every Debian package and its version. `differences`: where they are not the locked ones.
    `provenance`: what the labels say and what only this build knows (`expiry_ignored`).
    """

    name: str
    arch: str
    digest: str
    image_id: str
    packages: Mapping[str, str]
    recipe_sha256: str
    provenance: Mapping[str, Any]
    seconds_by_phase: Mapping[str, float]
    differences: tuple[Difference, ...]
    locked: LockedPackages | None

    @property
    def is_unexplained(self) -> bool:
        """The versions are the locked ones and the digest is not: the recipe changed, and the lock did not."""
        return bool(self.locked and self.locked.digest and not self.differences and self.locked.digest != self.digest)

    def unexplained_error(self) -> ManifestError:
        assert self.locked is not None
        return ManifestError(
            f"{self.name} has digest {self.digest} and the lock {self.locked.digest}, from the same package versions",
            where=self.locked.where,
            mend="the recipe changed and the lock did not: run rvvbench lock",
        )


@dataclass
class _Clock:
    seconds: dict[str, float] = field(default_factory=dict)

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = round(time.monotonic() - started, 2)


def build_image(
    recipe: Recipe,
    arch: str,
    *,
    engine: Engine,
    state_dir: Path,
    locked: LockedPackages | None = None,
    accept_expired: bool = False,
    mirror: str | None = None,
    progress: Progress | None = None,
) -> BuiltImage:
    """Build `recipe` for `arch` and import it under `recipe.image_name(arch)`.

    When the suite no longer serves the locked versions, it is built from what is served, and `differences` say so.
    A build that fails leaves no image and no files but its log below `state_dir/images`.

    Raises EnvironmentLacks (tools, emulator, network, disk, expired suite), ManifestError (recipe or pin wrong),
    RvvbenchError (anything else that mmdebstrap or podman says).
    """
    progress = progress or (lambda phase, line: None)
    if arch not in recipe.model.architectures:
        raise ManifestError(f"recipe {recipe.name} is not for {arch}", where=recipe.where())
    mmdebstrap.require_tools()
    foreign = arch != host_arch()
    if foreign and recipe.model.variant == "minbase":
        require_emulator({"amd64": "x86_64", "arm64": "aarch64"}.get(arch, arch))
    images = state_dir / "images"
    clock = _Clock()
    log_path = images / f"{recipe.name}-{arch}.log"
    # Two builds of one image take turns.
    turn = exclusive(images, f"{recipe.name}-{arch}")
    with writing(images), turn, log_path.open("w") as log, _workspace(images) as work:
        build = _Build(recipe, arch, state_dir, work, log, progress, foreign, mirror, clock)
        source = build.source(accept_expired)
        with ThreadPoolExecutor(2) as pool:
            # What is served is known long before the image is: a moved suite is told early, on the second core.
            resolving = pool.submit(build.resolve, source, locked)
            fetching = pool.submit(build.overlay)
            twin = build.twin(source)
            layer = build.root_filesystem(source, fetching.result(), twin)
            served = resolving.result()
        packages = build.packages(served)
        labels = _labels(recipe, packages)
        image = oci.compose(layer, arch, labels, recipe.model.source_date_epoch)
        name = recipe.image_name(arch)
        with clock.phase("import"):
            progress("import", name)
            _import(engine, image, name, arch)
        with clock.phase("verify"):
            check_inside(engine, ImageRef(name, arch, image.digest, image.image_id))
    provenance = {**labels, f"{LABEL}.expiry-ignored": source.ignore_expiry}
    (images / f"{recipe.name}-{arch}-{image.digest[7:19]}.json").write_text(json.dumps(provenance, indent=1) + "\n")
    return BuiltImage(
        name=name,
        arch=arch,
        digest=image.digest,
        image_id=image.image_id,
        packages=packages,
        recipe_sha256=recipe.sha256,
        provenance=provenance,
        seconds_by_phase=clock.seconds,
        differences=differences(locked.packages, packages) if locked else (),
        locked=locked,
    )


@dataclass(frozen=True)
class _Build:
    """One build under way."""

    recipe: Recipe
    arch: str
    state_dir: Path
    work: Path
    log: IO[str]
    progress: Progress
    foreign: bool
    mirror: str | None
    clock: _Clock

    def source(self, accept_expired: bool) -> Source:
        """Where packages come from. An expired suite is used only where that was accepted."""
        source = Source(self.recipe.model.suite, self.mirror)
        phase = "check suite"
        with self.clock.phase(phase):
            command = mmdebstrap.arguments(
                source, self.arch, "custom", (), "-", output_format="null", extra=["--simulate"]
            )
            try:
                self._run(phase, command)
            except mmdebstrap.ExpiredRelease:
                if not accept_expired:
                    raise
                self.progress(phase, "the suite's Release file is past its date, which --accept-expired accepts")
                return Source(self.recipe.model.suite, self.mirror, ignore_expiry=True)
        return source

    def resolve(self, source: Source, locked: LockedPackages | None) -> dict[str, str]:
        """The versions that the suite serves now; what differs from the locked ones is reported as progress."""
        with self.clock.phase("resolve"):
            served = self._simulate(source)
        for difference in differences(locked.packages, served) if locked else ():
            self.progress("resolve", f"the suite has moved: {difference}")
        return served

    def _simulate(self, source: Source) -> dict[str, str]:
        model = self.recipe.model
        command = mmdebstrap.arguments(
            source,
            self.arch,
            model.variant,
            model.packages,
            "-",
            output_format="null",
            extra=["--simulate", "--verbose"],
        )
        return parse_simulation(self._run("resolve", command))

    def overlay(self) -> Path:
        """A folder with what is not Debian's, laid out from the root."""
        model, epoch = self.recipe.model, self.recipe.model.source_date_epoch
        overlay = self.work / "overlay"
        overlay.mkdir()
        with self.clock.phase("wheels"):
            for wheel in model.wheels:
                self.progress("wheels", wheel.file)
                path = wheels.fetch(wheel, self.state_dir / "wheels", self.recipe.where())
                site = overlay / "usr/lib/python3/dist-packages"
                site.mkdir(parents=True, exist_ok=True)
                wheels.unpack(wheel, path, site, epoch)
            for name, text in model.files.items():
                target = overlay / name.removeprefix("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text)
                target.chmod(0o644)
                os.utime(target, (epoch, epoch))
            for folder, _, _ in os.walk(overlay):
                Path(folder).chmod(0o755)
        return overlay

    def twin(self, source: Source) -> Path | None:
        """Programs of the host's architecture from the same suite; None where the image is of this architecture."""
        if not self.foreign or self.recipe.model.variant != "minbase":
            return None
        twin = self.work / "twin"
        with self.clock.phase("twin"):
            command = mmdebstrap.arguments(
                source, host_arch(), "extract", TWIN_PACKAGES, str(twin), output_format="directory"
            )
            self._run("twin", command, in_memory=False)
        return twin

    def root_filesystem(self, source: Source, overlay: Path, twin: Path | None) -> oci.Layer:
        """The root filesystem as one uncompressed tar."""
        model = self.recipe.model
        hooks = self._hooks()
        extra: list[str] = []
        if model.variant == "minbase":
            extra += [f"--{stage}-hook={hooks / stage}.sh" for stage in ("extract", "essential", "customize")]
        else:
            extra.append(f"--extract-hook={FORGET_MIRROR}")
        command = mmdebstrap.arguments(
            source, self.arch, model.variant, model.packages, "-", output_format="tar", extra=extra
        )
        env = {
            "SOURCE_DATE_EPOCH": str(model.source_date_epoch),
            "RVVBENCH_HOOKS": str(hooks),
            "RVVBENCH_TWIN": str(twin or ""),
            "RVVBENCH_OVERLAY": str(overlay),
            "RVVBENCH_STATUS": str(self.work / "status"),
            "RVVBENCH_EXCLUDE": " ".join(model.exclude),
            "RVVBENCH_BYTE_COMPILE": " ".join(model.byte_compile),
        }
        layers: list[oci.Layer] = []
        with self.clock.phase("root filesystem"):
            self._run(
                "root filesystem",
                command,
                env=env,
                sink=lambda stream: layers.append(oci.write_layer(stream, self.work / "layer.tar")),
            )
        return layers[0]

    def _hooks(self) -> Path:
        """The hooks as they were when the recipe was hashed."""
        folder = self.work / "hooks"
        folder.mkdir()
        for name, data in self.recipe.hooks.items():
            (folder / name).write_bytes(data)
            (folder / name).chmod(0o755)
        return folder

    def packages(self, served: dict[str, str]) -> dict[str, str]:
        """What is installed, from dpkg; an extracted root filesystem has no dpkg, and holds what was resolved."""
        status = self.work / "status"
        return parse_status(status.read_text()) if status.exists() else dict(sorted(served.items()))

    def _run(self, phase: str, command: list[str], **options: Any) -> list[str]:
        scratch = self.work / ("scratch-" + phase.replace(" ", "-"))
        try:
            return mmdebstrap.run(
                command, phase=phase, progress=self.progress, log=self.log, scratch=scratch, **options
            )
        except MissingPackage as missing:
            raise ManifestError(missing.cause, where=self.recipe.where(missing.package), mend=missing.mend) from missing


def _labels(recipe: Recipe, packages: Mapping[str, str]) -> dict[str, str]:
    """Provenance that is the same for every build from the same versions."""
    listed = "".join(f"{name}={version}\n" for name, version in sorted(packages.items()))
    return {
        f"{LABEL}.recipe": recipe.name,
        f"{LABEL}.recipe-sha256": recipe.sha256,
        f"{LABEL}.suite": recipe.model.suite,
        f"{LABEL}.packages": listed,
        f"{LABEL}.packages-sha256": hashlib.sha256(listed.encode()).hexdigest(),
        f"{LABEL}.wheels": "".join(f"{wheel.file}={wheel.sha256}\n" for wheel in recipe.model.wheels),
    }


def _import(engine: Engine, image: oci.Image, name: str, arch: str) -> None:
    """Import, check that podman has what we wrote, and remove what it replaces under the name if nothing uses it."""
    from podman.errors import APIError

    before = look_up(engine, name)
    try:
        list(engine.client.images.load(data=oci.archive(image, name)))
    except APIError as error:
        said = str(error.explanation or error)
        if "no space left" in said:
            raise EnvironmentLacks("no space left while importing the image", where=name, mend="free 6 GB") from error
        raise RvvbenchError(f"podman cannot import the image: {said}", where=name) from error
    found = look_up(engine, name)
    if found is None or (found.digest, found.image_id, found.arch) != (image.digest, image.image_id, arch):
        with contextlib.suppress(APIError):
            engine.client.images.remove(name, force=True)
        raise RvvbenchError(f"podman imported {found}, but {image.digest} for {arch} was written", where=name)
    if before is not None and before.image_id != found.image_id:
        with contextlib.suppress(APIError):
            engine.client.images.remove(before.image_id)


@contextlib.contextmanager
def _workspace(images: Path) -> Iterator[Path]:
    """A folder for the build, always removed; those of builds that were killed are removed first.

    Mounts of a build live in a namespace of their own (see mmdebstrap.in_private_mounts), so removing is safe.
    """
    for left in images.glob(".build-*"):
        with contextlib.suppress(BlockingIOError), (left / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(left, ignore_errors=True)
    work = Path(tempfile.mkdtemp(prefix=".build-", dir=images))
    try:
        with (work / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
