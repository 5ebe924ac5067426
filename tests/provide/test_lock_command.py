"""`rvvbench lock` against git repositories and a Hub of our own: nulls become hashes, a moved branch is found."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hub_double import HubDouble

from rvvbench import project
from rvvbench.manifest.lock import Lock, load_lock

REPO = "meta-llama/Llama-3.2-1B"
REVISION = "4e20de362430cd3b72f300e6b0f18e50e7166e08"
FILES = {"config.json": b"{}", "model.safetensors": b"weights" * 100, "README.md": b"no part of a checkpoint"}


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "work")
    git(folder, "commit", "-q", "--allow-empty", "-m", "one")
    return folder


@pytest.fixture
def hub() -> Iterator[HubDouble]:
    double = HubDouble(REPO, REVISION, FILES)
    double.start()
    yield double
    double.stop()


@pytest.fixture
def manifests(tmp_path: Path, repository: Path) -> Path:
    """The project's manifests with one git stack that points at the repository, and only one model of a Hub."""
    copy = tmp_path / "manifests"
    shutil.copytree(project.manifests_dir(), copy)
    stack = copy / "stacks" / "upstream-branches.yaml"
    data = yaml.safe_load(stack.read_text())
    for part in ("pytorch", "sglang"):
        data[part] |= {"url": str(repository), "branch": "work"}
    stack.write_text(yaml.safe_dump(data, sort_keys=False))
    for path in (copy / "models").glob("*.yaml"):
        if path.stem != "llama-3.2-1b":
            path.unlink()
    return copy


def lock(manifests: Path, hub: HubDouble, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", "from rvvbench.cli.main import main; main()", "lock", *arguments],
        env={**os.environ, "RVVBENCH_MANIFESTS": str(manifests), "HF_ENDPOINT": hub.endpoint},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_lock_resolves_commits_and_file_hashes_and_check_finds_a_moved_branch(
    manifests: Path, repository: Path, hub: HubDouble
) -> None:
    code, said = lock(manifests, hub)
    assert code == 0, said
    locked: Lock = load_lock(manifests).lock
    head = git(repository, "rev-parse", "HEAD")
    assert {pin.commit for pin in locked.git.values()} == {head}
    assert locked.models["llama-3.2-1b"].files == {
        name: hashlib.sha256(content).hexdigest() for name, content in FILES.items() if name != "README.md"
    }
    code, said = lock(manifests, hub, "--check")
    assert code == 0, said

    git(repository, "commit", "-q", "--allow-empty", "-m", "two")
    code, said = lock(manifests, hub, "--check")
    assert code == 1
    assert "moved" in said
    assert git(repository, "rev-parse", "HEAD") in said
    assert "rvvbench.lock.yaml:" in said
    assert load_lock(manifests).lock == locked


def test_what_cannot_be_reached_stays_null_and_is_said(manifests: Path, repository: Path, hub: HubDouble) -> None:
    shutil.rmtree(repository)
    hub.stop()
    code, said = lock(manifests, hub)
    assert code == 0
    assert said.count("still null") == 4
    assert {pin.commit for pin in load_lock(manifests).lock.git.values()} == {None}
