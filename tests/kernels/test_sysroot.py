"""What is taken out of an image, and where its links point."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.engine.service import Engine
from rvvbench.provide import sysroot
from rvvbench.provide.sysroot import LIBRARIES, ensure_sysroot, unpack


def archive(members: dict[str, bytes | str]) -> bytes:
    """A tar stream: bytes are files, a text is the target of a symbolic link, names that end in / are folders."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name.rstrip("/"))
            if name.endswith("/"):
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            elif isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    for begin in range(0, len(data), size):
        yield data[begin : begin + size]


@given(size=st.integers(1, 20000))
def test_files_come_whole_however_the_stream_is_cut(tmp_path_factory, size: int) -> None:
    folder = tmp_path_factory.mktemp("unpacked")
    content = bytes(range(256)) * 40
    unpack(chunks(archive({"include/": b"", "include/a.h": content}), size), folder, folder)
    assert (folder / "include/a.h").read_bytes() == content


def test_absolute_links_stay_inside_the_sysroot(tmp_path: Path) -> None:
    unpack([archive({"lib/liba.so": "/usr/lib/liba.so.1", "lib/libb.so": "libb.so.1"})], tmp_path / "usr", tmp_path)
    assert (tmp_path / "usr/lib/liba.so").readlink() == Path("liba.so.1")
    assert (tmp_path / "usr/lib/libb.so").readlink() == Path("libb.so.1")


def test_members_outside_of_the_folder_are_left_out(tmp_path: Path) -> None:
    unpack([archive({"../escaped": b"x", "/rooted": b"x", "kept": b"x"})], tmp_path / "inner", tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["kept"]


def test_of_the_libraries_only_those_that_a_link_reads_are_kept(tmp_path: Path) -> None:
    names = ["libtorch_cpu.so.2.14", "libc.so", "libc.a", "Scrt1.o", "libgomp.so.1", "libLLVM.so.21", "perl/libc.so"]
    unpack([archive({f"triple/{name}": b"x" for name in names})], tmp_path, tmp_path, LIBRARIES)
    kept = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert kept == {"libtorch_cpu.so.2.14", "libc.so", "libc.a", "Scrt1.o", "libgomp.so.1"}
    assert not (tmp_path / "triple/perl").exists()


@dataclass(frozen=True)
class ToyImage:
    image_id: str = "sha256:1"
    digest: str = "sha256:2"


def alter(folder: Path) -> None:
    (folder / "usr/include/torch/library.h").write_text("#define X 2\n")


def lose(folder: Path) -> None:
    (folder / "usr/lib/libc.so").unlink()


def add(folder: Path) -> None:
    (folder / "usr/include/stdint.h").write_text("")


def bend(folder: Path) -> None:
    (folder / "lib").unlink()
    (folder / "lib").symlink_to("usr/include")


def forget(folder: Path) -> None:
    (folder.parent / f"{folder.name}.json").unlink()


def garble(folder: Path) -> None:
    (folder.parent / f"{folder.name}.json").write_bytes(b"\xff")


@pytest.mark.parametrize("harm", [alter, lose, add, bend, forget, garble])
def test_a_damaged_sysroot_is_copied_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path], None]
) -> None:
    def copy(image: Any, names: Any, engine: Any, draft: Path) -> None:
        for name in ("usr/include/torch/library.h", "usr/lib/libc.so"):
            (draft / name).parent.mkdir(parents=True)
            (draft / name).write_text(name)
        (draft / "lib").symlink_to("usr/lib")
        copies.append(draft)

    def ensure() -> Path:
        return ensure_sysroot(
            ToyImage(), arch="riscv64", engine=cast(Engine, None), state_dir=tmp_path, progress=said.append
        )

    copies: list[Path] = []
    said: list[str] = []
    monkeypatch.setattr(sysroot, "_copy", copy)
    folder = ensure()
    assert ensure() == folder and len(copies) == 1 and said == []
    harm(folder)
    assert ensure() == folder and len(copies) == 2
    assert len(said) == 1 and "copied anew" in said[0]
    assert (folder / "usr/include/torch/library.h").read_text() == "usr/include/torch/library.h"
    assert not (folder / "usr/include/stdint.h").exists()
    assert ensure() == folder and len(copies) == 2
