"""What is in a folder: every entry below it, by content."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from rvvbench.provide.file_hash import sha256_of

FOLDER = "folder"


def listing(folder: Path) -> dict[str, str]:
    """Entry below `folder` -> its SHA-256 for a file, `FOLDER`, or an arrow and the target for a symbolic link.

    A sysroot (12,000 files, 450 MB) takes 2 s on two cores that have other work too.
    """
    found = {}
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            entry = Path(path, name)
            found[entry.relative_to(folder).as_posix()] = _content(entry)
    return found


def difference(found: Mapping[str, str], expected: Mapping[str, str]) -> str | None:
    """The first entry that is not as expected and how, None where there is none."""
    for name in sorted(found.keys() | expected.keys()):
        if name not in found:
            return f"{name} is missing"
        if name not in expected:
            return f"{name} does not belong there"
        if found[name] != expected[name]:
            return f"{name} was changed"
    return None


def _content(entry: Path) -> str:
    if entry.is_symlink():
        return f"-> {entry.readlink()}"
    if entry.is_dir():
        return FOLDER
    return sha256_of(entry) if entry.is_file() else "neither file nor folder"
