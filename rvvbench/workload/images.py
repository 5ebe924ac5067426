"""Which image a run uses: the locked one, or what a moved suite forced this machine to build instead."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks, ManifestError
from rvvbench.image import relock
from rvvbench.image.build import LockedPackages
from rvvbench.image.recipe import Recipe, load_recipe
from rvvbench.image.relock import RelockedImage
from rvvbench.image.verify import ImageRef, require_image
from rvvbench.manifest.lock import LockedImage, LockFile
from rvvbench.record.schema import Image, PackageDifference, Relocked


@dataclass(frozen=True)
class UsedImage:
    """A verified image; `relocked` is set where it is not the one of the committed lock."""

    recipe: Recipe
    ref: ImageRef
    relocked: RelockedImage | None
    packages: dict[str, str]

    @property
    def reference(self) -> str:
        """What containers are created from: the id, because a name can be moved while a run lasts."""
        return self.ref.image_id

    def of_record(self) -> Image:
        """The image as a record keeps it."""
        relocked = None
        if self.relocked is not None:
            relocked = Relocked(
                reason=_why(self.relocked),
                differences=tuple(
                    PackageDifference(name=d.name, locked=d.locked, used=d.served) for d in self.relocked.differences
                ),
            )
        return Image(name=self.ref.name, digest=self.ref.digest, arch=self.ref.arch, relocked=relocked)


def _why(relocked: RelockedImage) -> str:
    if relocked.differences:
        return "the Debian suite no longer serves the locked versions"
    if relocked.replaces:
        return "the locked package versions gave other bytes on this machine than the locked digest"
    return "the lock has no image for this architecture; built on this machine"


def locked_image(lock: LockFile, recipe: str, arch: str) -> LockedImage | None:
    """The lock's entry, if it has one."""
    return lock.lock.images.get(recipe, {}).get(arch)


def locked_packages(lock: LockFile, recipe: str, arch: str) -> LockedPackages | None:
    """The lock's entry as the builder takes it."""
    entry = locked_image(lock, recipe, arch)
    if entry is None:
        return None
    return LockedPackages(entry.packages, entry.digest, lock.document.where(("images", recipe, arch, "digest")))


def use_image(lock: LockFile, name: str, arch: str, *, engine: Engine, state_dir: Path) -> UsedImage:
    """The image of recipe `name` for `arch`, verified against lock or machine-local lock.

    Raises EnvironmentLacks when it was not built here, ManifestError with file:line when it is not what is declared.
    """
    recipe = load_recipe(name)
    entry = locked_image(lock, name, arch)
    where = lock.document.where(("images", name, arch, "digest"))
    digest = entry.digest if entry else None
    if entry is not None and entry.recipe_sha256 != recipe.sha256:
        raise ManifestError(
            f"the recipe {recipe.path.name} has sha256 {recipe.sha256}, the lock was made with {entry.recipe_sha256}",
            where=lock.document.where(("images", name, arch, "recipe_sha256")),
            mend=f"undo the change of the recipe, or rvvbench image build {name} --arch {arch} --lock",
        )
    local = relock.current(state_dir, name, arch, locked_digest=digest, recipe_sha256=recipe.sha256)
    if local is not None:
        path = str(state_dir / relock.FILE)
        ref = require_image(recipe, arch, digest=local.digest, where=path, engine=engine)
        return UsedImage(recipe, ref, local, dict(local.packages))
    if entry is None:
        raise EnvironmentLacks(
            f"neither the lock nor this machine has an image {name} for {arch}",
            where=where,
            mend=f"rvvbench image build {name} --arch {arch}",
        )
    ref = require_image(recipe, arch, digest=entry.digest, where=where, engine=engine)
    return UsedImage(recipe, ref, None, dict(entry.packages))
