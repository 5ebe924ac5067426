from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from rvvbench.errors import EnvironmentLacks
from rvvbench.manifest.drift import drifts, updated, wanted
from rvvbench.manifest.lock import load_lock, save_lock
from rvvbench.progress import Silent
from rvvbench.workload.locking import moved_branches, recipe_hashes, resolve_online

COMMIT = "a" * 40
OTHER = "b" * 40


def kinds(manifests: Path) -> set[tuple[str, str]]:
    return {(d.kind, d.what) for d in drifts(load_lock(manifests), wanted(manifests), recipe_hashes())}


def test_the_committed_lock_agrees_with_the_manifests_and_recipes(manifests: Path) -> None:
    assert {kind for kind, _ in kinds(manifests)} <= {"unresolved"}


def test_a_changed_branch_is_drift_and_lock_mends_it(manifests: Path) -> None:
    stack = manifests / "stacks" / "upstream-branches.yaml"
    stack.write_text(stack.read_text().replace("torch_inductor_rvv", "other_branch"))
    assert ("changed", "git upstream-branches/sglang") in kinds(manifests)
    lock_file = load_lock(manifests)
    save_lock(lock_file.path, updated(lock_file.lock, wanted(manifests)))
    assert ("changed", "git upstream-branches/sglang") not in kinds(manifests)
    assert load_lock(manifests).lock.images == lock_file.lock.images


def test_a_recipe_that_changed_is_drift(manifests: Path) -> None:
    found = drifts(load_lock(manifests), wanted(manifests), {"runtime": "0" * 64})
    assert [d.what for d in found if d.kind in ("changed", "missing")]


def test_online_resolution_fills_nulls_and_says_what_stays_null(manifests: Path) -> None:
    def branch(url: str, name: str) -> str:
        if "sglang" in url:
            return COMMIT
        raise EnvironmentLacks("no such host")

    def files(repo: str, revision: str) -> dict[str, str]:
        return {"config.json": "c" * 64}

    def dataset_files(repo: str, revision: str, names: Collection[str]) -> dict[str, str]:
        return dict.fromkeys(names, "d" * 64)

    lock = updated(load_lock(manifests).lock, wanted(manifests))
    fresh, unresolved = resolve_online(
        lock, branch=branch, files=files, dataset_files=dataset_files, update=False, progress=Silent()
    )
    assert fresh.git["upstream-branches/sglang"].commit == COMMIT
    assert fresh.git["upstream-branches/pytorch"].commit is None
    assert [item.what for item in unresolved] == ["git upstream-branches/pytorch"]
    assert fresh.models["llama-3.2-1b"].files == {"config.json": "c" * 64}
    assert list(fresh.datasets["gsm8k"].files.values()) == ["d" * 64] * 2


def test_a_data_set_of_another_revision_or_with_other_files_is_drift(manifests: Path) -> None:
    path = manifests / "datasets" / "gsm8k.yaml"
    for old, new in (("e53f0488", "00000000"), ("main/test-", "main/other-")):
        text = path.read_text()
        path.write_text(text.replace(old, new))
        assert ("changed", "dataset gsm8k") in kinds(manifests)
        lock_file = load_lock(manifests)
        save_lock(lock_file.path, updated(lock_file.lock, wanted(manifests)))
        assert ("unresolved", "dataset gsm8k") in kinds(manifests)


def test_a_branch_that_moved_on_is_found_at_its_line(manifests: Path) -> None:
    lock_file = load_lock(manifests)
    git = {name: pin.model_copy(update={"commit": COMMIT}) for name, pin in lock_file.lock.git.items()}
    save_lock(lock_file.path, lock_file.lock.model_copy(update={"git": git}))
    moved, unresolved = moved_branches(load_lock(manifests), lambda url, name: OTHER)
    assert len(moved) == 2
    assert not unresolved
    assert "rvvbench.lock.yaml:" in moved[0].where


def test_two_stacks_may_pin_different_wheels(manifests: Path) -> None:
    stack = (manifests / "stacks" / "debian-rvv.yaml").read_text()
    other = stack.replace("name: debian-rvv", "name: debian-old").replace("21492759", "31492759")
    (manifests / "stacks" / "debian-old.yaml").write_text(other)
    assert ("changed", "wheel debian-old/sglang") in kinds(manifests)
    lock_file = load_lock(manifests)
    save_lock(lock_file.path, updated(lock_file.lock, wanted(manifests)))
    assert not {what for _, what in kinds(manifests) if what.startswith("wheel")}
