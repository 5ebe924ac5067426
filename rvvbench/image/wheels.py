"""Wheels that an image carries: fetched by hash, unpacked by rule."""

from __future__ import annotations

import fnmatch
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path

from rvvbench.errors import ManifestError
from rvvbench.image.recipe import Wheel
from rvvbench.provide.wheel import fetch_wheel


def fetch(wheel: Wheel, cache: Path, where: str) -> Path:
    """The wheel's file in `cache`, downloaded through pip where it is not there; as `fetch_wheel`, whose errors it
    raises at `where`.
    """
    return fetch_wheel(f"{wheel.name}=={wheel.version}", wheel.file, wheel.sha256, cache, where)


def unpack(wheel: Wheel, path: Path, site: Path, epoch_s: int) -> None:
    """Unpack below `site`, modes and times made equal; dropped files are gone from RECORD too."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.is_dir() or any(fnmatch.fnmatch(member.filename, pattern) for pattern in wheel.drop):
                continue
            target = site / member.filename
            if not target.resolve().is_relative_to(site.resolve()):
                raise ManifestError(f"{wheel.file} holds a path outside of itself: {member.filename}")
            target.parent.mkdir(parents=True, exist_ok=True)
            data = archive.read(member)
            if member.filename.endswith(".dist-info/RECORD"):
                data = _without_dropped(data.decode(), wheel.drop).encode()
            target.write_bytes(data)
            target.chmod(0o644)
            os.utime(target, (epoch_s, epoch_s))


def _without_dropped(record: str, drop: Sequence[str]) -> str:
    kept = [
        line
        for line in record.splitlines(keepends=True)
        if not any(fnmatch.fnmatch(line.split(",", 1)[0], pattern) for pattern in drop)
    ]
    return "".join(kept)
