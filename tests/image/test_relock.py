"""The machine-local lock."""

from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench.errors import EnvironmentLacks, ManifestError
from rvvbench.image import relock
from rvvbench.image.build import BuiltImage, LockedPackages
from rvvbench.image.suite import differences

LOCKED = LockedPackages({"a": "1"}, "sha256:old", "rvvbench.lock.yaml:5")


def built(arch: str = "riscv64", version: str = "2", digest: str = "sha256:new") -> BuiltImage:
    packages = {"a": version}
    return BuiltImage(
        name=f"localhost/rvvbench/tiny-{arch}:1",
        arch=arch,
        digest=digest,
        image_id="sha256:id",
        packages=packages,
        recipe_sha256="r",
        provenance={},
        seconds_by_phase={},
        differences=differences(LOCKED.packages, packages),
        locked=LOCKED,
    )


def current(state: Path, locked: str | None = "sha256:old", recipe: str = "r") -> relock.RelockedImage | None:
    return relock.current(state, "tiny", "riscv64", locked_digest=locked, recipe_sha256=recipe)


def test_without_a_file_nothing_is_relocked(tmp_path: Path) -> None:
    assert current(tmp_path) is None


def test_what_was_written_counts_with_its_differences(tmp_path: Path) -> None:
    relock.write(tmp_path, "tiny", built())
    entry = current(tmp_path)
    assert entry is not None
    assert entry.digest == "sha256:new"
    assert [str(difference) for difference in entry.listed()] == ["a: locked 1, served 2"]


def test_an_entry_is_stale_when_the_committed_lock_or_the_recipe_moves_on(tmp_path: Path) -> None:
    relock.write(tmp_path, "tiny", built())
    assert current(tmp_path, locked="sha256:newer") is None
    assert current(tmp_path, recipe="other") is None


def test_architectures_do_not_overwrite_each_other(tmp_path: Path) -> None:
    relock.write(tmp_path, "tiny", built("riscv64"))
    relock.write(tmp_path, "tiny", built("amd64"))
    assert set(relock.read(tmp_path).images["tiny"]) == {"riscv64", "amd64"}


def test_a_forgotten_entry_is_gone(tmp_path: Path) -> None:
    relock.write(tmp_path, "tiny", built())
    relock.forget(tmp_path, "tiny", "riscv64")
    assert current(tmp_path) is None


def test_a_damaged_file_is_told_and_not_ignored(tmp_path: Path) -> None:
    (tmp_path / relock.FILE).write_text("schema: something/else\n")
    with pytest.raises(ManifestError) as caught:
        relock.read(tmp_path)
    assert relock.FILE in str(caught.value.where)


def test_another_digest_from_the_same_versions_is_unexplained() -> None:
    image = built(version="1")
    assert image.is_unexplained
    assert image.unexplained_error().where == "rvvbench.lock.yaml:5"
    assert not built(version="1", digest="sha256:old").is_unexplained
    assert not built(version="2").is_unexplained


@pytest.mark.parametrize("content", [b"schema: \xff", b"- 1", b"schema: [", b"", b"\0"])
def test_a_file_of_garbage_is_told_with_its_path(tmp_path: Path, content: bytes) -> None:
    (tmp_path / relock.FILE).write_bytes(content)
    with pytest.raises(ManifestError, match="damaged") as caught:
        current(tmp_path)
    assert caught.value.where == str(tmp_path / relock.FILE)


def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / relock.FILE).mkdir()
    with pytest.raises(EnvironmentLacks, match="cannot be read") as caught:
        current(tmp_path)
    assert caught.value.where == str(tmp_path / relock.FILE)


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(EnvironmentLacks, match="RVVBENCH_HOME"):
        relock.forget(tmp_path / "home", "tiny", "riscv64")
