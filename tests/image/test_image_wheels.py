"""Wheels: fetched by hash, unpacked by rule."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from rvvbench.errors import ManifestError
from rvvbench.image.recipe import Wheel
from rvvbench.image.wheels import fetch, unpack

EPOCH_S = 1764000000


def wheel_with(path: Path, files: dict[str, str], **fields: object) -> tuple[Wheel, Path]:
    with zipfile.ZipFile(path / "toy-1-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    file = path / "toy-1-py3-none-any.whl"
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    wheel = Wheel.model_validate({"name": "toy", "version": "1", "file": file.name, "sha256": digest, **fields})
    return wheel, file


def test_a_cached_wheel_is_used_when_its_hash_is_the_pinned_one(tmp_path: Path) -> None:
    wheel, file = wheel_with(tmp_path, {"toy.py": "x = 1\n"})
    assert fetch(wheel, tmp_path, "recipe:1") == file


def test_one_changed_digit_of_the_hash_stops(tmp_path: Path) -> None:
    wheel, _ = wheel_with(tmp_path, {"toy.py": "x = 1\n"})
    changed = wheel.model_copy(update={"sha256": ("0" if wheel.sha256[0] != "0" else "1") + wheel.sha256[1:]})
    with pytest.raises(ManifestError) as caught:
        fetch(changed, tmp_path, "recipe.yaml:7")
    assert caught.value.where == "recipe.yaml:7"


def test_dropped_files_are_gone_from_disk_and_record(tmp_path: Path) -> None:
    record = "toy/a.py,sha256=x,1\ntoy/_core.so,sha256=y,2\n"
    files = {"toy/a.py": "", "toy/_core.so": "\x7fELF", "toy-1.dist-info/RECORD": record}
    wheel, file = wheel_with(tmp_path, files, drop=["toy/_core*.so"])
    unpack(wheel, file, tmp_path / "site", EPOCH_S)
    assert not (tmp_path / "site/toy/_core.so").exists()
    assert (tmp_path / "site/toy-1.dist-info/RECORD").read_text() == "toy/a.py,sha256=x,1\n"


def test_modes_and_times_are_the_same_on_every_machine(tmp_path: Path) -> None:
    wheel, file = wheel_with(tmp_path, {"toy/a.py": "x"})
    unpack(wheel, file, tmp_path / "site", EPOCH_S)
    status = (tmp_path / "site/toy/a.py").stat()
    assert (status.st_mode & 0o777, int(status.st_mtime)) == (0o644, EPOCH_S)


def test_a_path_outside_of_the_wheel_is_refused(tmp_path: Path) -> None:
    wheel, file = wheel_with(tmp_path, {"../../etc/passwd": "x"})
    with pytest.raises(ManifestError):
        unpack(wheel, file, tmp_path / "site", EPOCH_S)
