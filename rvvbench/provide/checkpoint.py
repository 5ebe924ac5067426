"""A checkpoint on this machine, every file of it proven: generated from a seed, one revision from the Hub, or the
quantised form of one of those.

A checkpoint is one folder. It appears whole (made beside its place, then renamed) and is checked again at every use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rvvbench.errors import ManifestError, RvvbenchError
from rvvbench.provide.draft import draft_of
from rvvbench.provide.file_hash import HashCache, exclusive, sha256_of
from rvvbench.provide.receipt import Receipt

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all), now and then, from one thread at a time."""
Where = Callable[[str], str]
"""From a file's name to the place that pins it, such as manifest:line."""


@dataclass(frozen=True)
class PinnedFile:
    """What a file must be: SHA-256 (64 hex digits) and size in bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class SyntheticModel:
    """What determines a synthetic checkpoint (config.json, algorithm, seed), and the pins of what comes out."""

    name: str
    config: Mapping[str, Any]
    algorithm: str
    seed: int
    files: Mapping[str, PinnedFile]


@dataclass(frozen=True)
class CheckpointDir:
    """A verified checkpoint: its folder, each file's SHA-256 and size in bytes as found there, and where its weights
    come from, quantised or not.
    """

    path: Path
    files: Mapping[str, tuple[str, int]]
    kind: Literal["hub", "synthetic"]

    @property
    def sha256s(self) -> dict[str, str]:
        """File -> sha256."""
        return {name: sha256 for name, (sha256, _) in self.files.items()}


def ensure_synthetic(
    model: SyntheticModel, folder: Path, progress: Progress | None = None, where: Where | None = None
) -> CheckpointDir:
    """The checkpoint of `model` in `folder`, generated there if the folder is not there yet, and verified.

    Raises `ManifestError` naming the file, both hashes and `where(file)` if a file is not what the manifest pins,
    `RvvbenchError` if a checkpoint that was already there is not complete or has other files too.
    """
    from rvvbench.provide import synthetic

    if model.algorithm != synthetic.ALGORITHM:
        raise ManifestError(
            f"{model.name}: this rvvbench generates {synthetic.ALGORITHM}, not {model.algorithm}",
            mend="set `algorithm` and the pins that belong to it, or use the version of rvvbench that they came from",
        )
    if not model.files:
        raise ManifestError(
            f"{model.name}: no file of the synthetic checkpoint is pinned",
            mend="`python -m rvvbench.provide.synthetic MODEL.yaml` prints the pins for `synthetic: files:`",
        )
    cache = HashCache(folder.parent / "hashes.json")
    with exclusive(folder.parent, folder.name):
        if not folder.exists():
            with draft_of(folder) as scratch:
                written = synthetic.generate(model.config, model.seed, scratch, progress)
                generated = {name: (file.sha256, file.size) for name, file in written.items()}
                _compare(
                    generated,
                    model.files,
                    f"{model.name}: the generator wrote",
                    "correct the pin, the config or the seed",
                    where,
                )
                scratch.rename(folder)
        found = _hash_files(folder, cache.sha256)
    mend = f"restore the pin; if it is right, remove {folder}: the next run generates it again"
    _compare(found, model.files, f"{folder} holds", mend, where)
    return CheckpointDir(folder, found, "synthetic")


def ensure_hub(
    repo: str,
    revision: str,
    locked_files: Mapping[str, str | None],
    folder: Path,
    token: str | None = None,
    endpoint: str | None = None,
    progress: Progress | None = None,
    where: Where | None = None,
) -> CheckpointDir:
    """The checkpoint `repo` at `revision` (40 hex digits) in `folder`, downloaded if it is not there, and verified.

    `locked_files` gives the SHA-256 that the lock holds for a file, or null for one that nobody has resolved; a name
    that the download lacks, or another hash, is a `ManifestError`. What was downloaded is written down beside the
    folder, and held against it at every later use, which needs no network. Raises what `hub.download` raises.
    """
    from rvvbench.provide import hub

    receipt = Receipt(folder, "downloaded", {"repo": repo, "revision": revision})
    cache = HashCache(folder.parent / "hashes.json")
    with exclusive(folder.parent, folder.name):
        if not folder.exists():
            with draft_of(folder) as scratch:
                hub.download(repo, revision, scratch, token=token, endpoint=endpoint, progress=progress)
                found = _hash_files(scratch, sha256_of)
                _compare_locked(found, locked_files, f"{repo} at {revision} holds", where)
                receipt.write(found)
                scratch.rename(folder)
        found = _hash_files(folder, cache.sha256)
        _compare_receipt(found, receipt)
    _compare_locked(found, locked_files, f"{folder} holds", where)
    return CheckpointDir(folder, found, "hub")


def ensure_w8a8(
    source: CheckpointDir,
    pinned: Mapping[str, PinnedFile] | None = None,
    progress: Progress | None = None,
    where: Where | None = None,
) -> CheckpointDir:
    """The W8A8 form of the verified checkpoint `source`, quantised beside it if it is not there, and verified.

    Its folder is named after the algorithm and the hashes of the source's files: another source is another folder. What
    was written is written down beside the folder, and held against it at every later use. Raises `ManifestError` naming
    the file, both hashes and `where(file)` if a file is not what `pinned` says (null: nothing pins it), `RvvbenchError`
    if files changed after they were written, and what `quantise` raises.
    """
    from rvvbench.provide import quantise

    origin = {"algorithm": quantise.ALGORITHM, "source": dict(sorted(source.sha256s.items()))}
    key = hashlib.sha256(json.dumps(origin).encode()).hexdigest()[:12]
    folder = source.path.parent / f"{source.path.name}-w8a8-{key}"
    receipt = Receipt(folder, "quantised", origin)
    cache = HashCache(folder.parent / "hashes.json")
    with exclusive(folder.parent, folder.name):
        if not folder.exists():
            with draft_of(folder) as scratch:
                written = quantise.quantise(source.path, scratch, progress)
                found = {name: (file.sha256, file.size) for name, file in written.items()}
                if pinned is not None:
                    mend = "correct the pin; `python -m rvvbench.provide.quantise MODEL.yaml` prints it"
                    _compare(found, pinned, f"{source.path.name}: the quantiser wrote", mend, where)
                receipt.write(found)
                scratch.rename(folder)
        found = _hash_files(folder, cache.sha256)
        _compare_receipt(found, receipt)
    if pinned is not None:
        mend = f"restore the pin; if it is right, remove {folder}: the next run quantises it again"
        _compare(found, pinned, f"{folder} holds", mend, where)
    return CheckpointDir(folder, found, source.kind)


def _hash_files(folder: Path, sha256: Callable[[Path], str]) -> dict[str, tuple[str, int]]:
    """SHA-256 and size of every file below `folder`, by its relative name."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): (sha256(path), path.stat().st_size) for path in paths}


def _compare(
    found: Mapping[str, tuple[str, int]], pinned: Mapping[str, PinnedFile], subject: str, mend: str, where: Where | None
) -> None:
    for name in sorted(pinned.keys() | found.keys()):
        place = where(name) if where is not None and name in pinned else None
        if name not in found:
            raise ManifestError(
                f"{subject} no {name}, which is pinned with sha256 {pinned[name].sha256}", where=place, mend=mend
            )
        if name not in pinned:
            raise ManifestError(
                f"{subject} {name} (sha256 {found[name][0]}), which is not pinned", where=place, mend=mend
            )
        if found[name][0] != pinned[name].sha256:
            raise ManifestError(
                f"{subject} {name} with sha256 {found[name][0]}, pinned is {pinned[name].sha256}",
                where=place,
                mend=mend,
            )
        if found[name][1] != pinned[name].size:
            raise ManifestError(
                f"{subject} {name} of {found[name][1]} bytes, pinned are {pinned[name].size}", where=place, mend=mend
            )


def _compare_locked(
    found: Mapping[str, tuple[str, int]], locked: Mapping[str, str | None], subject: str, where: Where | None
) -> None:
    for name, expected in sorted(locked.items()):
        place = where(name) if where is not None else None
        mend = "correct the lock: `rvvbench lock` resolves it again"
        if name not in found:
            raise ManifestError(f"{subject} no {name}, which the lock names", where=place, mend=mend)
        if expected is not None and found[name][0] != expected:
            raise ManifestError(
                f"{subject} {name} with sha256 {found[name][0]}, the lock holds {expected}", where=place, mend=mend
            )


def _compare_receipt(found: Mapping[str, tuple[str, int]], receipt: Receipt) -> None:
    recorded = {name: PinnedFile(file.sha256, file.size) for name, file in receipt.read().items()}
    try:
        _compare(found, recorded, f"{receipt.folder} holds", receipt.mend, None)
    except ManifestError as error:
        # The receipt is no manifest: the files changed on disk.
        cause = f"{error.cause} (as it was {receipt.done})"
        raise RvvbenchError(cause, where=str(receipt.path), mend=error.mend) from error
