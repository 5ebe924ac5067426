"""`rvvbench.lock.yaml`: what the manifests' names resolved to, down to hashes."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml
from pydantic import Field

from rvvbench.manifest.load import require_folder, validated
from rvvbench.manifest.models import Commit, Digest, Sha256, Strict
from rvvbench.manifest.source import Document, load

FILE_NAME = "rvvbench.lock.yaml"


class LockedBuild(Strict):
    """A wheel that `rvvbench build --lock` made: the key of all that went in, and the file that came out."""

    key: Sha256
    filename: str
    sha256: Sha256


class LockedGit(Strict):
    """A branch, the commit it was resolved to (null until somebody did), and by architecture what was built of that."""

    url: str
    branch: str
    commit: Commit | None
    builds: dict[str, LockedBuild] = Field(default_factory=dict)


class LockedWheel(Strict):
    """A wheel file and its hash."""

    filename: str
    sha256: Sha256


class LockedImage(Strict):
    """An image of one architecture: digest, recipe and every package=version that went in."""

    digest: Digest
    recipe_sha256: Sha256
    suite: str
    packages: dict[str, str]


class LockedModel(Strict):
    """A Hub revision of a model or data set, and its files' hashes; null until resolved online."""

    repo: str
    revision: Commit
    files: dict[str, Sha256 | None] = Field(default_factory=dict)


class Lock(Strict):
    """The whole file."""

    schema_: Literal["rvvbench/lock/1"] = Field(alias="schema")
    git: dict[str, LockedGit] = Field(default_factory=dict)
    wheels: dict[str, LockedWheel] = Field(default_factory=dict)
    images: dict[str, dict[str, LockedImage]] = Field(default_factory=dict)
    models: dict[str, LockedModel] = Field(default_factory=dict)
    datasets: dict[str, LockedModel] = Field(default_factory=dict)
    kernels: dict[str, LockedBuild] = Field(default_factory=dict)


@dataclass(frozen=True)
class LockFile:
    """The lock with the places of its values."""

    lock: Lock
    document: Document
    path: Path


def load_lock(manifests: Path) -> LockFile:
    """Read `rvvbench.lock.yaml`; raises ManifestError with file and line."""
    require_folder(manifests)
    path = manifests / FILE_NAME
    document = load(path, mend="restore the file, e.g. `git checkout -- manifests`: the lock belongs to the manifests")
    return LockFile(validated(Lock, document), document, path)


HEADER = """\
# What the manifests' names resolved to. Written by `rvvbench lock`, `rvvbench image build --lock` and
# `rvvbench build --lock`, not by hand.
"""


def save_lock(path: Path, lock: Lock) -> None:
    """Write the lock, atomically, in a fixed order."""
    data = lock.model_dump(mode="json", by_alias=True)
    text = HEADER + yaml.safe_dump(data, sort_keys=False, width=120)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
