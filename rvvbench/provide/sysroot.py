"""The part of a runtime image that compiling and linking against it needs, as a folder on this machine."""

from __future__ import annotations

import fnmatch
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol

from rvvbench.engine.container import ContainerSpec, created
from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks
from rvvbench.provide import tree
from rvvbench.provide.draft import draft_of
from rvvbench.provide.file_hash import exclusive, write_atomically

# Grows when what is taken from an image changes.
CONTENT_VERSION = 1


class Image(Protocol):
    """An image that podman has: its id to start it by, its manifest digest ("sha256:...") to know it by."""

    @property
    def image_id(self) -> str: ...

    @property
    def digest(self) -> str: ...


@dataclass(frozen=True)
class Architecture:
    """One architecture's names: Debian's multiarch triple, the kernel headers' folder, the dynamic linker's path."""

    machine: str
    triple: str
    uapi: str
    loader: str


ARCHITECTURES = {
    "riscv64": Architecture("riscv64", "riscv64-linux-gnu", "riscv", "lib/ld-linux-riscv64-lp64d.so.1"),
    "amd64": Architecture("x86_64", "x86_64-linux-gnu", "x86", "lib64/ld-linux-x86-64.so.2"),
    "arm64": Architecture("aarch64", "aarch64-linux-gnu", "arm64", "lib/ld-linux-aarch64.so.1"),
}

# Of the libraries' folder, which is most of an image, what a link against torch reads.
LIBRARIES = (
    "*crt*.o",
    "ld-linux*",
    *(f"lib{name}.{kind}" for name in ("c", "m", "mvec", "pthread", "dl", "rt") for kind in ("so*", "a")),
    "libc_nonshared.a",
    "libm-*.a",
    *(f"lib{name}.so*" for name in ("gcc_s", "stdc++", "gomp", "c10", "torch", "torch_cpu")),
)


def ensure_sysroot(
    image: Image, *, arch: str, engine: Engine, state_dir: Path, progress: Callable[[str], None] | None = None
) -> Path:
    """The sysroot of `image`, copied out of it once (about 15 s); the image's digest is its name.

    What was copied is listed beside the folder and held against it at every use; a damaged sysroot is copied anew,
    since a kernel's key names the image only. Nothing of the image is run: podman reads the files, so the emulator has
    no part in it. Raises EnvironmentLacks where the image has no libtorch-dev.
    """
    names = ARCHITECTURES[arch]
    base = state_dir / "kernels" / "sysroots"
    folder = base / f"{arch}-{image.digest.removeprefix('sha256:')[:32]}-{CONTENT_VERSION}"
    with exclusive(base, folder.name):
        receipt = base / f"{folder.name}.json"
        if folder.exists():
            problem = _damage(folder, receipt)
            if problem is None:
                return folder
            if progress is not None:
                progress(f"{folder} is copied anew: {problem}")
            shutil.rmtree(folder)
        with draft_of(folder) as draft:
            _copy(image, names, engine, draft)
            if not (draft / "usr/include/torch/library.h").exists():
                raise EnvironmentLacks(
                    "the runtime image has no headers of torch (libtorch-dev)",
                    where=image.image_id,
                    mend="add libtorch-dev to images/runtime.yaml, then rvvbench image build",
                )
            write_atomically(receipt, json.dumps(tree.listing(draft), indent=0, sort_keys=True).encode())
            draft.rename(folder)
    return folder


def _damage(folder: Path, receipt: Path) -> str | None:
    """What is not as it was copied, None where all is."""
    try:
        expected = json.loads(receipt.read_text())
    except (OSError, ValueError):
        expected = None
    if not isinstance(expected, dict):
        return f"{receipt.name} does not say what was copied"
    return tree.difference(tree.listing(folder), expected)


def _copy(image: Image, names: Architecture, engine: Engine, draft: Path) -> None:
    libraries = f"/usr/lib/{names.triple}"
    with created(engine, ContainerSpec(image.image_id, ("true",))) as container:
        for path in ("/usr/include", "/usr/lib/gcc", f"/usr/lib/linux/uapi/{names.uapi}", libraries):
            stream, _ = container.get_archive(path)
            wanted = LIBRARIES if path == libraries else None
            unpack(stream, draft / PurePosixPath(path).parent.relative_to("/"), draft, wanted)
    for alias in ("lib", "lib64"):
        (draft / "usr" / alias).mkdir(exist_ok=True)
        (draft / alias).symlink_to(f"usr/{alias}")
    loader = draft / "usr" / names.loader
    loader.symlink_to(f"../lib/{names.triple}/{loader.name}")


def unpack(chunks: Iterable[bytes], folder: Path, root: Path, wanted: tuple[str, ...] | None = None) -> None:
    """Unpack a tar stream below `folder`; of the archive's top folder only direct members that match `wanted`.

    Absolute symbolic links are made relative to `root`, so that they stay inside. Members that would lie outside of
    `folder`, devices and the like are left out.
    """
    with tarfile.open(fileobj=_reader(chunks), mode="r|") as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts:
                continue
            if wanted is not None and not (
                len(name.parts) == 2 and any(fnmatch.fnmatchcase(name.name, pattern) for pattern in wanted)
            ):
                continue
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if member.isdir():
                target.mkdir(exist_ok=True)
            elif member.issym():
                target.symlink_to(_inside(member.linkname, target, root))
            elif member.islnk():
                os.link(folder / member.linkname, target)
            elif member.isreg():
                source = archive.extractfile(member)
                assert source is not None, "a regular file has content"
                with target.open("wb") as file:
                    shutil.copyfileobj(source, file)


def _inside(link: str, target: Path, root: Path) -> str:
    """`link` as it is, or, of an absolute one, the way from `target` to the same place below `root`."""
    if not link.startswith("/"):
        return link
    return os.path.relpath(root / link.lstrip("/"), target.parent)


def _reader(chunks: Iterable[bytes]) -> IO[bytes]:
    return io.BufferedReader(_Chunks(iter(chunks)), 1 << 20)


class _Chunks(io.RawIOBase):
    """An iterator of bytes as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            try:
                self._rest = next(self._chunks)
            except StopIteration:
                return 0
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
