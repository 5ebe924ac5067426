"""The folder that modules are found in inside a container is what its wheels hold, at every use."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rvvbench.errors import RvvbenchError
from rvvbench.provide.plugin import build_plugin
from rvvbench.provide.site import ensure_site
from rvvbench.provide.wheelfile import WheelContent, write_wheel


@dataclass(frozen=True)
class Made:
    path: Path
    sha256: str


def wheel(folder: Path, name: str, text: bytes = b"x = 1\n") -> Made:
    content = WheelContent(name, "1", "py3-none-any", "", {f"{name}/__init__.py": text, f"{name}/deep/b.py": b""})
    path = write_wheel(content, folder)
    return Made(path, hashlib.sha256(path.read_bytes()).hexdigest())


def listing(site: Path) -> dict[str, bytes]:
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def edit(site: Path) -> None:
    (site / "a/__init__.py").write_text("x = 2\n")


def edit_and_its_record(site: Path) -> None:
    edit(site)
    (site / "a-1.dist-info/RECORD").write_text("")


def add(site: Path) -> None:
    (site / "sitecustomize.py").write_text("")


def add_folder(site: Path) -> None:
    (site / "torch").mkdir()


def remove(site: Path) -> None:
    (site / "b/__init__.py").unlink()


def link(site: Path) -> None:
    elsewhere = site.parent / "elsewhere"
    (site / "a/deep").rename(elsewhere)
    (site / "a/deep").symlink_to(elsewhere)


@pytest.mark.parametrize("harm", [edit, edit_and_its_record, add, add_folder, remove, link])
def test_a_site_that_was_changed_is_made_anew_and_that_is_told(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    wheels = [wheel(tmp_path, "a"), wheel(tmp_path, "b")]
    said: list[str] = []
    site = ensure_site(wheels, tmp_path / "sites", said.append)
    pristine = listing(site)
    assert {"a/__init__.py", "b/deep/b.py"} <= pristine.keys()
    harm(site)
    assert ensure_site(wheels, tmp_path / "sites", said.append) == site
    assert listing(site) == pristine
    assert not (site / "torch").exists() and not (site / "a/deep").is_symlink()
    assert len(said) == 1 and "made anew" in said[0]


def test_a_site_that_holds_is_taken_as_it_is(tmp_path: Path) -> None:
    said: list[str] = []
    site = ensure_site([wheel(tmp_path, "a")], tmp_path / "sites", said.append)
    inode = site.stat().st_ino
    assert ensure_site([wheel(tmp_path, "a")], tmp_path / "sites", said.append).stat().st_ino == inode
    assert said == []
    assert [path.name for path in (tmp_path / "sites").iterdir() if path.is_dir()] == [site.name]


def test_a_wheel_that_another_checkout_wrote_over_is_not_unpacked(tmp_path: Path) -> None:
    mine = wheel(tmp_path, "a")
    wheel(tmp_path, "a", b"x = 2\n")
    with pytest.raises(RvvbenchError, match="no longer the wheel"):
        ensure_site([mine], tmp_path / "sites", lambda line: None)


def test_two_checkouts_that_share_a_home_have_a_plugin_wheel_each(tmp_path: Path) -> None:
    wheels = []
    for value in (1, 2):
        source = tmp_path / str(value)
        (source / "src").mkdir(parents=True)
        (source / "pyproject.toml").write_text('[project]\nname = "p"\nversion = "1"\n')
        (source / "src/p.py").write_text(f"x = {value}\n")
        wheels.append(build_plugin(source, tmp_path / "home"))
    for made in wheels:
        assert hashlib.sha256(made.path.read_bytes()).hexdigest() == made.sha256
