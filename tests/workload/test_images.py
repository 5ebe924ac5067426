"""Which image a run uses, and what the record says of it. podman is not asked."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rvvbench import project
from rvvbench.errors import EnvironmentLacks, ManifestError
from rvvbench.image import relock
from rvvbench.image.recipe import load_recipe
from rvvbench.image.verify import ImageRef
from rvvbench.manifest.lock import LockFile, load_lock
from rvvbench.workload import images
from rvvbench.workload.images import use_image

OTHER = "sha256:" + "e" * 64


@pytest.fixture
def lock() -> LockFile:
    return load_lock(project.manifests_dir())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Digests that podman was asked for; it has whatever is asked."""
    digests: list[str] = []

    def require_image(recipe: Any, arch: str, *, digest: str, where: str, engine: Any) -> ImageRef:
        digests.append(digest)
        return ImageRef(recipe.image_name(arch), arch, digest, digest)

    monkeypatch.setattr(images, "require_image", require_image)
    return digests


def relocked(state_dir: Path, replaces: str | None, *, differs: bool = True) -> None:
    recipe = load_recipe("runtime")
    entry = relock.RelockedImage(
        digest=OTHER,
        recipe_sha256=recipe.sha256,
        replaces=replaces,
        built_at=datetime(2026, 11, 30, tzinfo=UTC),
        differences=(relock.DifferenceModel(name="python3-torch", locked="1", served="2"),) if differs else (),
        packages={"python3-torch": "2"},
    )
    local = relock.LocalLock(images={"runtime": {"riscv64": entry}})
    relock._save(state_dir, local)


def test_the_locked_image_is_used_and_is_not_marked(lock: LockFile, asked: list[str], tmp_path: Path) -> None:
    used = use_image(lock, "runtime", "riscv64", engine=None, state_dir=tmp_path)  # type: ignore[arg-type]
    assert asked == [lock.lock.images["runtime"]["riscv64"].digest]
    assert used.of_record().relocked is None


def test_after_the_suite_moved_the_local_image_is_used_and_the_record_says_what_differs(
    lock: LockFile, asked: list[str], tmp_path: Path
) -> None:
    relocked(tmp_path, lock.lock.images["runtime"]["riscv64"].digest)
    used = use_image(lock, "runtime", "riscv64", engine=None, state_dir=tmp_path)  # type: ignore[arg-type]
    assert asked == [OTHER]
    marked = used.of_record().relocked
    assert marked is not None
    assert [(d.name, d.locked, d.used) for d in marked.differences] == [("python3-torch", "1", "2")]


def test_other_bytes_from_the_locked_versions_are_not_blamed_on_the_suite(
    lock: LockFile, asked: list[str], tmp_path: Path
) -> None:
    relocked(tmp_path, lock.lock.images["runtime"]["riscv64"].digest, differs=False)
    used = use_image(lock, "runtime", "riscv64", engine=None, state_dir=tmp_path)  # type: ignore[arg-type]
    marked = used.of_record().relocked
    assert marked is not None
    assert "other bytes" in marked.reason
    assert marked.differences == ()


def test_a_local_lock_made_against_another_digest_does_not_count(
    lock: LockFile, asked: list[str], tmp_path: Path
) -> None:
    relocked(tmp_path, "sha256:" + "0" * 64)
    used = use_image(lock, "runtime", "riscv64", engine=None, state_dir=tmp_path)  # type: ignore[arg-type]
    assert asked == [lock.lock.images["runtime"]["riscv64"].digest]
    assert used.relocked is None


def test_a_recipe_that_is_not_the_locked_one_is_refused_at_its_line(lock: LockFile, tmp_path: Path) -> None:
    entry = lock.lock.images["runtime"]["riscv64"].model_copy(update={"recipe_sha256": "0" * 64})
    changed = lock.lock.model_copy(update={"images": {"runtime": {"riscv64": entry}}})
    with pytest.raises(ManifestError, match="recipe") as caught:
        use_image(LockFile(changed, lock.document, lock.path), "runtime", "riscv64", engine=None, state_dir=tmp_path)  # type: ignore[arg-type]
    assert "rvvbench.lock.yaml:" in str(caught.value.where)


def test_an_architecture_that_nobody_built_names_the_command(lock: LockFile, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks) as caught:
        use_image(lock, "runtime", "arm64", engine=None, state_dir=tmp_path)  # type: ignore[arg-type]
    assert caught.value.mend == "rvvbench image build runtime --arch arm64"
