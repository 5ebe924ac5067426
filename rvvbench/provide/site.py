"""The folder that Python finds our modules in inside a container: wheels, unpacked side by side, and nothing else."""

from __future__ import annotations

import hashlib
import io
import shutil
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from rvvbench.errors import RvvbenchError
from rvvbench.provide import tree
from rvvbench.provide.draft import draft_of
from rvvbench.provide.file_hash import exclusive, sha256_of
from rvvbench.provide.wheel import unpack_wheel
from rvvbench.provide.wheelfile import WheelContent, write_wheel


class Wheel(Protocol):
    """A wheel that was made here: its file, and the SHA-256 (64 hex digits) that it had then."""

    @property
    def path(self) -> Path: ...

    @property
    def sha256(self) -> str: ...


@dataclass(frozen=True)
class SmallWheel:
    """A wheel that is written at every use."""

    path: Path
    sha256: str


# Python appends a site folder to its path, behind the folder of the image's own packages.
FIRST = (
    "import sys; sys.path.remove('/rvvbench/site'); sys.path.insert("
    "next((i for i, p in enumerate(sys.path) if p.endswith('-packages')), len(sys.path)), '/rvvbench/site')\n"
)


def first_on_path(folder: Path) -> SmallWheel:
    """A wheel, written into `folder`, that makes what a site holds win over the image's packages of the same name."""
    content = WheelContent(
        name="rvvbench_first",
        version="1",
        tag="py3-none-any",
        summary="Puts the mounted packages before the image's",
        files={"rvvbench_first.pth": FIRST.encode()},
    )
    path = write_wheel(content, folder)
    return SmallWheel(path, sha256_of(path))


def ensure_site(wheels: Sequence[Wheel], base: Path, progress: Callable[[str], None]) -> Path:
    """The wheels unpacked into one folder below `base`, named by their hashes, as an installer would do it.

    At every use the folder is held against the content of the wheels, which their RECORDs list; one with a changed,
    missing or further file is made anew. Raises RvvbenchError where a wheel is no longer what was made.
    """
    folder = base / "-".join(wheel.sha256[:16] for wheel in wheels)
    with exclusive(base, folder.name):
        contents = [_content(wheel) for wheel in wheels]
        problem = None
        if folder.exists():
            problem = tree.difference(tree.listing(folder), _expected(contents))
            if problem is None:
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


def _expected(contents: Sequence[bytes]) -> dict[str, str]:
    """What the wheels unpacked have to be, as `tree.listing` tells it."""
    expected = {}
    for content in contents:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.infolist():
                if not member.is_dir():
                    expected[member.filename] = hashlib.sha256(archive.read(member)).hexdigest()
    folders = {parent.as_posix() for name in expected for parent in PurePosixPath(name).parents} - {"."}
    return expected | dict.fromkeys(folders, tree.FOLDER)
