"""Git sources, from repositories that the tests make."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from small_projects import BRANCH, SmallProjects

from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError
from rvvbench.provide.git import clone_at, resolve_branch, verify_tree


def git(folder: Path, *arguments: str) -> str:
    identity = {
        f"GIT_{who}_{what}": "someone@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


class Repository:
    """A repository with branch `topic`: two commits and a third on top; and `main`, which has only the first."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.url = folder.as_uri()
        git(folder, "init", "--quiet", "--initial-branch", "main")
        self.first = self.commit("one")
        git(folder, "checkout", "--quiet", "-b", "topic")
        self.second = self.commit("two")
        self.third = self.commit("three")

    def commit(self, text: str) -> str:
        (self.folder / "file.txt").write_text(text)
        git(self.folder, "add", "file.txt")
        git(self.folder, "commit", "--quiet", "-m", text)
        return git(self.folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "upstream")


def test_a_branch_resolves_to_its_tip(repository: Repository) -> None:
    assert resolve_branch(repository.url, "topic") == repository.third
    assert resolve_branch(repository.url, "main") == repository.first


def test_a_branch_that_is_not_there_is_a_wrong_manifest(repository: Repository) -> None:
    git(repository.folder, "branch", "feature/topic2")
    for branch in ("topic2", "top", "refs/heads/topic", "*"):
        with pytest.raises(ManifestError, match="has no branch"):
            resolve_branch(repository.url, branch)


def test_a_repository_that_is_not_there_is_the_machine_s_lack(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks) as caught:
        resolve_branch((tmp_path / "nothing").as_uri(), "main")
    assert caught.value.where == (tmp_path / "nothing").as_uri()


def test_an_address_is_never_taken_for_an_option(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentLacks):
        resolve_branch(f"--upload-pack=touch {tmp_path / 'owned'}", "main")
    assert not (tmp_path / "owned").exists()


def test_a_clone_is_detached_at_the_commit_even_below_the_tip(repository: Repository, tmp_path: Path) -> None:
    folder = clone_at(repository.url, "topic", repository.second, tmp_path / "clones" / "x")
    assert (folder / "file.txt").read_text() == "two"
    assert git(folder, "rev-parse", "HEAD") == repository.second
    assert git(folder, "branch", "--show-current") == ""
    assert {path.name for path in (tmp_path / "clones").iterdir()} == {"x", ".x.lock"}


def test_a_server_that_serves_no_single_commits_gives_the_branch(repository: Repository, tmp_path: Path) -> None:
    git(repository.folder, "config", "uploadpack.allowAnySHA1InWant", "false")
    git(repository.folder, "config", "protocol.version", "0")
    folder = clone_at(repository.url, "topic", repository.second, tmp_path / "x")
    assert (folder / "file.txt").read_text() == "two"


def test_a_clone_that_is_there_is_used_again_without_the_repository(repository: Repository, tmp_path: Path) -> None:
    folder = clone_at(repository.url, "topic", repository.second, tmp_path / "x")
    repository.folder.rename(tmp_path / "moved")
    assert clone_at(repository.url, "topic", repository.second, folder) == folder


def test_one_changed_digit_of_a_commit_stops(repository: Repository, tmp_path: Path) -> None:
    wrong = ("0" if repository.second[0] != "0" else "1") + repository.second[1:]
    with pytest.raises(ManifestError, match=f"does not have the commit {wrong}"):
        clone_at(repository.url, "topic", wrong, tmp_path / "x")
    assert not (tmp_path / "x").exists()
    folder = clone_at(repository.url, "topic", repository.second, tmp_path / "x")
    with pytest.raises(RvvbenchError, match=f"at {repository.second}, pinned is {wrong}"):
        clone_at(repository.url, "topic", wrong, folder)


@pytest.mark.parametrize("commit", ["topic", "abc123", "A" * 40, ""])
def test_only_forty_digits_are_a_commit(repository: Repository, tmp_path: Path, commit: str) -> None:
    with pytest.raises(ManifestError, match="not a commit"):
        clone_at(repository.url, "topic", commit, tmp_path / "x")


def test_a_changed_or_added_file_is_refused(repository: Repository, tmp_path: Path) -> None:
    folder = clone_at(repository.url, "topic", repository.second, tmp_path / "x")
    (folder / "file.txt").write_text("mine")
    with pytest.raises(RvvbenchError, match=r"1 changed or added files \(file\.txt\)"):
        clone_at(repository.url, "topic", repository.second, folder)
    git(folder, "checkout", "--", "file.txt")
    (folder / "new.txt").write_text("mine")
    with pytest.raises(RvvbenchError, match=r"new\.txt"):
        clone_at(repository.url, "topic", repository.second, folder)


def test_an_ignored_file_and_a_file_that_git_no_longer_looks_at_are_refused(
    repository: Repository, tmp_path: Path
) -> None:
    folder = clone_at(repository.url, "topic", repository.second, tmp_path / "x")
    (folder / ".git" / "info" / "exclude").write_text("*.so\n")
    (folder / "built.so").write_text("mine")
    with pytest.raises(RvvbenchError, match=r"built\.so"):
        verify_tree(folder, repository.second)
    (folder / "built.so").unlink()
    git(folder, "update-index", "--assume-unchanged", "file.txt")
    (folder / "file.txt").write_text("mine")
    with pytest.raises(RvvbenchError, match=r"file\.txt"):
        verify_tree(folder, repository.second)


def test_submodules_are_at_the_commits_that_the_commit_names(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    with SmallProjects(tmp_path / "served") as projects:
        outer, inner = projects.torch, projects.sglang
        git(outer.folder, "submodule", "--quiet", "add", inner.url, "third_party/inner")
        # As PyTorch's own say, which hides changes from git status.
        git(outer.folder, "config", "-f", ".gitmodules", "submodule.third_party/inner.ignore", "dirty")
        commit = outer.commit({})
        named = inner.head
        inner.commit({"README.md": "later\n"})
        folder = clone_at(outer.url, BRANCH, commit, tmp_path / "clone")
        within = folder / "third_party" / "inner"
        assert git(within, "rev-parse", "HEAD") == named
        (within / "README.md").write_text("mine")
        with pytest.raises(RvvbenchError, match="third_party/inner"):
            verify_tree(folder, commit)
        git(within, "checkout", "--quiet", "--", "README.md")
        verify_tree(folder, commit)
        git(within, "fetch", "--quiet", "origin")
        git(within, "checkout", "--quiet", inner.head)
        with pytest.raises(RvvbenchError, match="third_party/inner"):
            verify_tree(folder, commit)


def test_a_folder_inside_another_repository_is_no_clone(repository: Repository) -> None:
    inner = repository.folder / "inner"
    inner.mkdir()
    with pytest.raises(RvvbenchError, match="no git work tree"):
        verify_tree(inner, repository.third)


def test_a_machine_without_git_is_told_to_install_it(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(EnvironmentLacks, match="git is not installed"):
        resolve_branch(repository.url, "topic")
