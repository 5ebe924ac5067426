"""What the lock holds of builds, and when it lets go of it."""

from __future__ import annotations

from pathlib import Path

from rvvbench import project
from rvvbench.manifest.drift import drifts, updated, wanted
from rvvbench.manifest.lock import Lock, LockedBuild, load_lock, save_lock
from rvvbench.progress import Silent
from rvvbench.provide.stack_wheels import Source
from rvvbench.workload.locking import other_bytes, resolve_online, with_builds, with_kernels

COMMIT, NEXT = "a" * 40, "b" * 40
BUILD = LockedBuild(key="1" * 64, filename="torch-1-py3-none-any.whl", sha256="2" * 64)
NAME = "upstream-branches/pytorch"


def locked() -> Lock:
    """The project's lock with one build of the pytorch that it names."""
    lock = load_lock(project.manifests_dir()).lock
    pin = lock.git[NAME]
    return with_builds(lock, "upstream-branches", "riscv64", [(Source("pytorch", pin.url, pin.branch, COMMIT), BUILD)])


def test_a_build_stands_beside_the_commit_and_survives_saving(tmp_path: Path) -> None:
    lock = with_kernels(locked(), "amd64", BUILD)
    path = tmp_path / "rvvbench.lock.yaml"
    save_lock(path, lock)
    assert load_lock(tmp_path).lock == lock
    assert lock.git[NAME].commit == COMMIT
    assert lock.git[NAME].builds == {"riscv64": BUILD}
    assert lock.kernels == {"amd64": BUILD}


def test_builds_for_other_architectures_of_the_same_commit_stay(tmp_path: Path) -> None:
    lock = locked()
    pin = lock.git[NAME]
    for commit, architectures in ((COMMIT, {"riscv64", "amd64"}), (NEXT, {"amd64"})):
        source = Source("pytorch", pin.url, pin.branch, commit)
        assert set(with_builds(lock, "upstream-branches", "amd64", [(source, BUILD)]).git[NAME].builds) == architectures


def test_locking_again_keeps_a_build_as_long_as_its_commit() -> None:
    want = wanted(project.manifests_dir())
    assert updated(locked(), want).git[NAME].builds == {"riscv64": BUILD}
    for commit, builds in ((COMMIT, {"riscv64": BUILD}), (NEXT, {})):
        fresh, _ = resolve_online(
            locked(),
            branch=lambda url, name, c=commit: c,
            files=lambda *_: {},
            dataset_files=lambda *_: {},
            update=True,
            progress=Silent(),
        )
        assert fresh.git[NAME].builds == builds


def test_a_build_is_no_drift(tmp_path: Path) -> None:
    save_lock(tmp_path / "rvvbench.lock.yaml", with_kernels(locked(), "riscv64", BUILD))
    found = drifts(load_lock(tmp_path), wanted(project.manifests_dir()), {})
    assert not [drift for drift in found if drift.what == f"git {NAME}" or "kernels" in drift.what]


def test_other_bytes_of_the_same_key_are_said_and_another_key_is_not() -> None:
    assert other_bytes(None, BUILD) is None
    assert other_bytes(BUILD, BUILD) is None
    assert other_bytes(BUILD.model_copy(update={"key": "3" * 64, "sha256": "4" * 64}), BUILD) is None
    said = other_bytes(BUILD.model_copy(update={"sha256": "4" * 64}), BUILD)
    assert said is not None
    assert ("2" * 16 in said, "4" * 16 in said) == (True, True)
