"""SHA-256 of big files, remembered as long as the file is the same."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rvvbench.project import writing

_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class WrittenFile:
    """What was written: SHA-256 (64 hex digits) and size in bytes."""

    sha256: str
    size: int


def sha256_of(path: Path) -> str:
    """64 hex digits of the file's content; reads all of it."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ_BYTES):
            digest.update(block)
    return digest.hexdigest()


class HashCache:
    """Hashes kept in a JSON file, each valid for a (path, size, mtime_ns, ctime_ns, inode).

    It saves reading gigabytes before every run. A program can put a file's mtime back, not its ctime: that would take
    changing the machine's clock, or the disk below the file system.
    """

    def __init__(self, store: Path) -> None:
        self._store = store

    def sha256(self, path: Path) -> str:
        """Hash of `path`, from the cache where its identity is the one that was hashed."""
        key = str(path.resolve())
        before = _identity(path)
        known = self._load()
        entry = known.get(key)
        if isinstance(entry, dict) and entry.get("identity") == before and isinstance(entry.get("sha256"), str):
            return str(entry["sha256"])
        digest = sha256_of(path)
        if _identity(path) == before:
            self._save({**self._load(), key: {"identity": before, "sha256": digest}})
        return digest

    def _load(self) -> dict[str, object]:
        try:
            content = json.loads(self._store.read_text())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _save(self, known: dict[str, object]) -> None:
        with writing(self._store):
            self._store.parent.mkdir(parents=True, exist_ok=True)
        present = {key: value for key, value in sorted(known.items()) if Path(key).exists()}
        write_atomically(self._store, json.dumps(present, indent=1).encode())


def _identity(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees all of it or what was there before. Raises EnvironmentLacks."""
    with writing(path):
        descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(scratch).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(scratch).unlink()
            raise


@contextlib.contextmanager
def exclusive(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock `name` of `folder` (made if missing): two processes do not provide the same thing at once.

    Raises EnvironmentLacks where the folder cannot be written.
    """
    import fcntl

    path = folder / f".{name}.lock"
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
        opened = path.open("w")
    with opened as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
