"""The caches of this machine: for each key a folder with a manifest, and beside it the directory that it names.

A directory is complete before the manifest names it, and a manifest is replaced in one step, so that a process that is
killed at any moment leaves the cache that there was, the new one, or none.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from rvvbench.cache.directory import Listing, change, listing
from rvvbench.cache.key import Difference, digest_of, nearest
from rvvbench.errors import RvvbenchError, UsageError
from rvvbench.project import writing
from rvvbench.provide.file_hash import exclusive, write_atomically

SCHEMA = "rvvbench/cache/1"
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Origin:
    """The cold process that made a cache: of which record's row."""

    run_id: str
    row: str
    process: int = 0

    def plain(self) -> dict[str, Any]:
        return {"run_id": self.run_id, "row": self.row, "process": self.process}


@dataclass(frozen=True)
class Kept:
    """A cache that is kept: the fields of its key, what made it, its files, and where they are."""

    key: Mapping[str, Any]
    origin: Origin
    files: Listing
    folder: Path

    @property
    def digest(self) -> str:
        return digest_of(self.key)

    def damage(self) -> str | None:
        """What of the files is no longer as it was made; None where nothing is."""
        found = list(change(self.files, listing(self.folder)).told())
        if not found:
            return None
        entry, what = found[0]
        alike = sum(other == what for _, other in found)
        return f"{entry} {what}" + (f" and {alike - 1} more" if alike > 1 else "")

    def check(self, again: str) -> None:
        """Raise RvvbenchError where a file is not as it was made; `again`: what to do when the cache is removed."""
        damage = self.damage()
        if damage is not None:
            raise RvvbenchError(
                f"the cache {self.digest} is not what {self.origin.row} of {self.origin.run_id} made: {damage}",
                where=str(self.folder),
                mend=f"rvvbench cache remove {self.digest}, and {again}",
            )


class CacheStore:
    """Below `folder`, which is made when something is put into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, key: Mapping[str, Any], origin: Origin, directory: Path, files: Listing) -> Kept:
        """Take `directory`, whose listing is `files`, as the cache of `key`, instead of one that there was.

        Raises EnvironmentLacks where nothing can be written.
        """
        digest = digest_of(key)
        with exclusive(self.folder, digest):
            place = self.folder / digest
            with writing(place):
                place.mkdir(exist_ok=True)
                # Another row of the same run may have the same key; and a process that was killed leaves its folder.
                names = (f"{origin.run_id}-{number}" for number in count())
                taken = next(path for name in names if not (path := place / name).exists())
                shutil.move(directory, taken)
            content = {
                "schema": SCHEMA,
                "key": dict(key),
                "origin": origin.plain(),
                "directory": taken.name,
                "files": dict(files),
            }
            write_atomically(place / MANIFEST, json.dumps(content, indent=1, ensure_ascii=False).encode())
            _sweep(place, taken.name)
        return Kept(dict(key), origin, dict(files), taken)

    def get(self, digest: str) -> Kept | None:
        """The cache of that digest; None where there is none. Raises RvvbenchError for one that cannot be read."""
        place = self.folder / digest
        if not (place / MANIFEST).is_file():
            return None
        try:
            content = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
            if content["schema"] != SCHEMA:
                raise ValueError(f"schema {content['schema']}")
            origin = Origin(**content["origin"])
            kept = Kept(dict(content["key"]), origin, dict(content["files"]), place / str(content["directory"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RvvbenchError(
                f"the cache {digest} cannot be read: {type(error).__name__} {error}",
                where=str(place / MANIFEST),
                mend=f"rvvbench cache remove {digest}",
            ) from error
        if kept.digest != digest:
            raise RvvbenchError(
                f"the cache {digest} says that its key is {kept.digest}",
                where=str(place / MANIFEST),
                mend=f"rvvbench cache remove {digest}",
            )
        return kept

    def digests(self) -> list[str]:
        """The digests of all keys that have a folder, sorted."""
        if not self.folder.is_dir():
            return []
        return sorted(path.name for path in self.folder.iterdir() if path.is_dir() and not path.name.startswith("."))

    def find(self, prefix: str) -> str:
        """The one digest that begins so. Raises UsageError for none and for several."""
        found = [digest for digest in self.digests() if prefix and digest.startswith(prefix)]
        if len(found) != 1:
            several = f"{len(found)} caches begin with {prefix!r}" if found else f"there is no cache {prefix!r}"
            raise UsageError(several, where=str(self.folder), mend="rvvbench cache list names them")
        return found[0]

    def remove(self, digest: str) -> None:
        """The cache and everything beside it is gone; first its manifest, so that no half of it is ever taken."""
        with exclusive(self.folder, digest):
            place = self.folder / digest
            with writing(place):
                (place / MANIFEST).unlink(missing_ok=True)
                shutil.rmtree(place, ignore_errors=False)

    def nearest(self, key: Mapping[str, Any]) -> tuple[Difference, ...] | None:
        """How `key` differs from the key of the cache that is most alike; None where there is no cache."""
        return nearest(key, self._keys())

    def _keys(self) -> Iterator[Mapping[str, Any]]:
        for digest in self.digests():
            try:
                kept = self.get(digest)
            except RvvbenchError:
                continue
            if kept is not None:
                yield kept.key


def _sweep(place: Path, keep: str) -> None:
    """Remove what the manifest does not name."""
    for path in place.iterdir():
        if path.name not in (MANIFEST, keep):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
