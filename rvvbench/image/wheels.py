"""Wheels that an image carries: fetched by hash, unpacked by rule."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from rvvbench.errors import EnvironmentLacks, ManifestError
from rvvbench.image.recipe import Wheel


def fetch(wheel: Wheel, cache: Path, where: str) -> Path:
    """The wheel's file in `cache`, downloaded through pip where it is not there. The hash is checked every time.

    Raises ManifestError (with `where`) when the bytes are not the pinned ones, EnvironmentLacks without network or pip.
    """
    path = cache / wheel.file
    if not path.exists():
        _download(wheel, path, where)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != wheel.sha256:
        raise ManifestError(
            f"{wheel.file} has sha256 {found}, the recipe pins {wheel.sha256}",
            where=where,
            mend=f"remove {path} if the download is broken; else the pin is wrong",
        )
    return path


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


def _download(wheel: Wheel, path: Path, where: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    python, abi, platform = wheel.file.removesuffix(".whl").rsplit("-", 3)[1:]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--no-input"]
    command += ["--disable-pip-version-check", "--require-hashes"]
    if platform != "any":
        version = python.removeprefix("cp")
        command += [f"--platform={platform}", f"--abi={abi}", "--implementation=cp"]
        command += [f"--python-version={version[0]}.{version[1:]}"]
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        requirement = Path(folder) / "requirement.txt"
        requirement.write_text(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n")
        done = subprocess.run(
            [*command, f"--dest={folder}", f"--requirement={requirement}"], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            if "DO NOT MATCH THE HASHES" in done.stderr:
                raise ManifestError(
                    f"the package index serves {wheel.name} {wheel.version} with another sha256 than the recipe pins",
                    where=where,
                    mend="correct the recipe, after asking why it changed",
                )
            said = [line for line in done.stderr.strip().splitlines() if line.startswith("ERROR")] or [
                "no reason given"
            ]
            raise EnvironmentLacks(
                f"pip cannot fetch {wheel.file}: {said[-1].removeprefix('ERROR: ')}",
                where=where,
                mend="check the network, or put the file into " + str(path.parent),
            )
        (Path(folder) / wheel.file).rename(path)
