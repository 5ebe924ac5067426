"""The machine-local lock: images that a moved suite forced this machine to build from other versions than the lock's.

File `state_dir()/rvvbench.local.lock.yaml`. An entry counts as long as the committed lock names the digest it replaces.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rvvbench.errors import EnvironmentLacks, ManifestError
from rvvbench.image.build import BuiltImage
from rvvbench.image.suite import Difference
from rvvbench.provide.file_hash import exclusive, write_atomically

FILE = "rvvbench.local.lock.yaml"


class DifferenceModel(BaseModel):
    """One package that is not the locked one."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    locked: str | None
    served: str | None


class RelockedImage(BaseModel):
    """What this machine uses instead of the locked image with digest `replaces`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    digest: str
    recipe_sha256: str
    replaces: str | None
    built_at: datetime
    differences: tuple[DifferenceModel, ...]
    packages: dict[str, str]

    def listed(self) -> tuple[Difference, ...]:
        return tuple(Difference(d.name, d.locked, d.served) for d in self.differences)


class LocalLock(BaseModel):
    """The whole file: recipe -> architecture -> image."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    schema_: Literal["rvvbench/local-lock/1"] = Field("rvvbench/local-lock/1", alias="schema")
    images: dict[str, dict[str, RelockedImage]] = {}


def read(state_dir: Path) -> LocalLock:
    """The machine's local lock, empty where there is none. Raises ManifestError where the file is damaged."""
    path = state_dir / FILE
    try:
        return LocalLock.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return LocalLock()
    except OSError as error:
        mend = f"remove {path}, or let it be read"
        raise EnvironmentLacks(
            f"the machine-local lock cannot be read: {error.strerror}", where=str(path), mend=mend
        ) from error
    except (UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise ManifestError("the machine-local lock is damaged", where=str(path), mend=f"remove {path}") from error


def current(
    state_dir: Path, recipe: str, arch: str, *, locked_digest: str | None, recipe_sha256: str
) -> RelockedImage | None:
    """The entry that counts now, None when there is none or the lock or the recipe has moved on since."""
    entry = read(state_dir).images.get(recipe, {}).get(arch)
    if entry is None or entry.replaces != locked_digest or entry.recipe_sha256 != recipe_sha256:
        return None
    return entry


def write(state_dir: Path, recipe: str, built: BuiltImage) -> RelockedImage:
    """Record that `built` replaces the locked image; other entries stay. Atomic, and two processes take turns."""
    entry = RelockedImage(
        digest=built.digest,
        recipe_sha256=built.recipe_sha256,
        replaces=built.locked.digest if built.locked else None,
        built_at=datetime.now(UTC).replace(microsecond=0),
        differences=tuple(DifferenceModel(name=d.name, locked=d.locked, served=d.served) for d in built.differences),
        packages=dict(built.packages),
    )
    with exclusive(state_dir, FILE):
        lock = read(state_dir)
        lock.images.setdefault(recipe, {})[built.arch] = entry
        _save(state_dir, lock)
    return entry


def forget(state_dir: Path, recipe: str, arch: str) -> None:
    """Drop an entry: the suite serves the locked versions again, or the lock moved."""
    with exclusive(state_dir, FILE):
        lock = read(state_dir)
        if lock.images.get(recipe, {}).pop(arch, None) is not None:
            _save(state_dir, lock)


def _save(state_dir: Path, lock: LocalLock) -> None:
    text = yaml.safe_dump(lock.model_dump(mode="json", by_alias=True), sort_keys=False)
    write_atomically(state_dir / FILE, text.encode())
