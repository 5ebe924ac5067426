"""The folder that Python finds our modules in inside a container: wheels, unpacked side by side, and nothing else."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol

from rvvbench.errors import RvvbenchError
from rvvbench.provide.draft import draft_of
from rvvbench.provide.file_hash import exclusive, sha256_of
from rvvbench.provide.wheel import unpack_wheel


class Wheel(Protocol):
    """A wheel that was made here: its file, and the SHA-256 (64 hex digits) that it had then."""

    @property
    def path(self) -> Path: ...

    @property
    def sha256(self) -> str: ...


def ensure_site(wheels: Sequence[Wheel], base: Path, progress: Callable[[str], None]) -> Path:
    """The wheels unpacked into one folder below `base`, named by their hashes, as an installer would do it.

    At every use the folder is held against the content of the wheels, which their RECORDs list; one with a changed,
    missing or further file is made anew. Raises RvvbenchError where a wheel is no longer what was made.
    """
    folder = base / "-".join(wheel.sha256[:16] for wheel in wheels)
    with exclusive(base, folder.name):
        contents = [_content(wheel) for wheel in wheels]
        expected = {name: sha256 for content in contents for name, sha256 in _listing(content).items()}
        problem = damage(folder, expected) if folder.exists() else None
        if folder.exists() and problem is None:
            return folder
        with draft_of(folder) as draft:
            site = draft / "site"
            site.mkdir()
            for index, content in enumerate(contents):
                wheel = draft / f"{index}.whl"
                wheel.write_bytes(content)
                shutil.copytree(unpack_wheel(wheel, draft / str(index)), site, dirs_exist_ok=True)
            if problem is not None:
                progress(f"{folder} is made anew: {problem}")
                folder.rename(draft / "damaged")
            site.rename(folder)
    return folder


def damage(folder: Path, expected: dict[str, str]) -> str | None:
    """What in `folder` is not as `expected` (file below it -> SHA-256), None where all is."""
    folders = {parent.as_posix() for name in expected for parent in PurePosixPath(name).parents}
    if folder.is_symlink() or not folder.is_dir():
        return "it is no folder"
    found = set()
    for path, subfolders, files in os.walk(folder):
        for name in (*subfolders, *files):
            entry = Path(path) / name
            relative = entry.relative_to(folder).as_posix()
            if relative in folders and entry.is_dir() and not entry.is_symlink():
                continue
            if relative not in expected or entry.is_symlink() or not entry.is_file():
                return f"{relative} is of no wheel"
            if sha256_of(entry) != expected[relative]:
                return f"{relative} is not as in its wheel"
            found.add(relative)
    missing = sorted(expected.keys() - found)
    return f"{missing[0]} is missing" if missing else None


def _content(wheel: Wheel) -> bytes:
    """The wheel's bytes, read once, so that what is checked is what is unpacked."""
    content = wheel.path.read_bytes()
    if hashlib.sha256(content).hexdigest() != wheel.sha256:
        raise RvvbenchError(
            f"{wheel.path.name} is no longer the wheel that was made (sha256 {wheel.sha256})",
            where=str(wheel.path),
            mend="run again",
        )
    return content


def _listing(content: bytes) -> dict[str, str]:
    """File -> SHA-256 of a wheel's content."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {
            member.filename: hashlib.sha256(archive.read(member)).hexdigest()
            for member in archive.infolist()
            if not member.is_dir()
        }
