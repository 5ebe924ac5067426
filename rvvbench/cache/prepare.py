"""The directory that a process is given: empty, or a copy of what a recorded cold process made."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from rvvbench.cache.directory import Listing, change, listing
from rvvbench.cache.key import CacheKey
from rvvbench.cache.store import CacheStore, Kept, Origin
from rvvbench.errors import RvvbenchError, UsageError
from rvvbench.project import writing


@dataclass(frozen=True)
class Prepared:
    """`folder` is mounted; `before` is what was in it then. `origin`: who made that, None where it was empty."""

    state: str
    key: CacheKey
    folder: Path
    before: Listing
    origin: Origin | None


def cold(key: CacheKey, folder: Path) -> Prepared:
    """An empty directory at `folder`, which must not exist."""
    with writing(folder):
        folder.mkdir(parents=True)
    return Prepared("cold", key, folder, {}, None)


def warm(key: CacheKey, kept: Kept, folder: Path) -> Prepared:
    """A copy of `kept` at `folder`, which must not exist; the original stays out of the process's reach.

    Raises RvvbenchError where a file of the original, or of the copy, is not the one that was made.
    """
    kept.check("run with --cache both")
    with writing(folder):
        shutil.copytree(kept.folder, folder, symlinks=True)
    copied = listing(folder)
    if change(kept.files, copied):
        raise RvvbenchError(
            f"the copy of the cache {kept.digest} is not what was copied", where=str(folder), mend="run again"
        )
    return Prepared("warm", key, folder, copied, kept.origin)


def kept_for(key: CacheKey, store: CacheStore, variant: str, mend: str) -> Kept:
    """The kept cache of exactly this key. Raises UsageError that names the fields in which the nearest one differs;
    `mend` is the command that makes one.
    """
    kept = store.get(key.digest)
    if kept is not None:
        return kept
    apart = store.nearest(key.plain())
    if apart is None:
        cause = f"no cold run of {variant} has left a cache on this machine"
    else:
        said = "; ".join(difference.text for difference in apart)
        cause = f"no cache fits {variant}: the nearest one was made for another {said}"
    raise UsageError(cause, where=str(store.folder), mend=mend)
