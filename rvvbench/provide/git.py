"""Sources from git, at one exact commit."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError
from rvvbench.provide.draft import draft_of
from rvvbench.provide.file_hash import exclusive

_COMMIT = re.compile(r"[0-9a-f]{40}")


def resolve_branch(url: str, branch: str) -> str:
    """The commit (40 hex digits) that `branch` of the repository at `url` is on now.

    Raises `ManifestError` if there is no such branch, `EnvironmentLacks` if the repository cannot be reached or git is
    not installed.
    """
    listing = _remote(["ls-remote", "--heads", "--", url, f"refs/heads/{branch}"], url, None)
    for line in listing.splitlines():
        commit, _, ref = line.partition("\t")
        if ref == f"refs/heads/{branch}" and _COMMIT.fullmatch(commit):
            return commit
    raise ManifestError(f"{url} has no branch {branch}", mend="correct `url` or `branch`")


def clone_at(url: str, branch: str, commit: str, folder: Path) -> Path:
    """A work tree of `url` at `commit` (40 hex digits) in `folder`, detached and unchanged; `folder`.

    A folder that is there already is used if it is at that commit and clean. A new one holds that commit only where the
    server serves single commits, else the whole branch; submodules are at the commits that this one names. Raises
    `ManifestError` for a commit that the repository or branch does not have, `EnvironmentLacks` as `resolve_branch`
    does, `RvvbenchError` for a folder that holds something else or was changed.
    """
    if not _COMMIT.fullmatch(commit):
        raise ManifestError(f"{commit!r} is not a commit", mend="pin 40 hex digits: `rvvbench lock`")
    with exclusive(folder.parent, folder.name):
        if folder.exists():
            verify_tree(folder, commit)
            return folder
        with draft_of(folder) as draft:
            _fetch(url, branch, commit, draft)
            verify_tree(draft, commit)
            draft.rename(folder)
    return folder


def commit_time_s(folder: Path) -> int:
    """When the commit that the work tree is at was made: seconds since 1970, as the commit itself says."""
    return int(_git(["log", "-1", "--format=%ct"], folder))


def verify_tree(folder: Path, commit: str) -> None:
    """Check that `folder` is a work tree at exactly `commit`, its submodules at the commits that this one names, with
    no changes and no files of its own, ignored ones either; `RvvbenchError` if not.
    """
    mend = f"remove {folder}: the next run clones it again"
    top = _run(["rev-parse", "--show-toplevel"], folder)
    if top.returncode != 0 or Path(top.stdout.strip()).resolve() != folder.resolve():
        raise RvvbenchError("this folder is no git work tree", where=str(folder), mend=mend)
    head = _git(["rev-parse", "HEAD"], folder).strip()
    if head != commit:
        raise RvvbenchError(f"the work tree is at {head}, pinned is {commit}", where=str(folder), mend=mend)
    # A project's own .gitmodules may say `ignore = dirty`.
    listed = ["status", "--porcelain", "--untracked-files=all", "--ignored", "--ignore-submodules=none"]
    changed = [line[3:] for line in _git(listed, folder).splitlines()]
    if (folder / ".gitmodules").exists():
        # A line begins with a blank where the submodule is at its commit, with another sign where it is not.
        modules = _git(["submodule", "status", "--recursive"], folder).splitlines()
        changed += [line.split()[1] for line in modules if not line.startswith(" ")]
    # Git looks at no file with such a mark again.
    changed += [line[2:] for line in _git(["ls-files", "-v"], folder).splitlines() if not line.startswith("H ")]
    changed = list(dict.fromkeys(changed))
    if changed:
        raise RvvbenchError(
            f"the work tree has {len(changed)} changed or added files ({', '.join(changed[:5])}), "
            f"so it is not what {commit} says",
            where=str(folder),
            mend=f"commit the changes to a branch and pin it, or {mend}",
        )


def _fetch(url: str, branch: str, commit: str, folder: Path) -> None:
    """Make `folder` a work tree at `commit`."""
    _git(["init", "--quiet"], folder)
    _git(["remote", "add", "origin", url], folder)
    # The same bytes on every machine, whatever the user's own configuration says.
    _git(["config", "core.autocrlf", "false"], folder)
    if _run(["fetch", "--quiet", "--depth", "1", "origin", commit], folder).returncode != 0:
        refspec = f"+refs/heads/{branch}:refs/remotes/origin/{branch}"
        resolve_branch(url, branch)
        _remote(["fetch", "--quiet", "origin", refspec], url, folder)
    if _run(["cat-file", "-e", f"{commit}^{{commit}}"], folder).returncode != 0:
        raise ManifestError(
            f"branch {branch} of {url} does not have the commit {commit}",
            mend="pin a commit of that branch: `rvvbench lock` resolves its tip",
        )
    _git(["checkout", "--quiet", "--detach", commit], folder)
    if (folder / ".gitmodules").exists():
        update = ["-c", "core.autocrlf=false", "submodule", "--quiet", "update", "--init", "--recursive"]
        if _run([*update, "--depth", "1"], folder).returncode != 0:
            _remote(update, f"submodules of {url}", folder)


def _run(arguments: Sequence[str], folder: Path | None) -> subprocess.CompletedProcess[str]:
    # Never ask for a password, and never take a hook or a directory of the caller's own repository for ours.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment.update(GIT_TERMINAL_PROMPT="0", LC_ALL="C")
    command = ["git", "-c", "core.hooksPath=/dev/null", *arguments]
    try:
        # The modes of a checkout follow the umask, and a wheel keeps them.
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, umask=0o022
        )
    except FileNotFoundError as error:
        raise EnvironmentLacks("git is not installed", mend="apt-get install git") from error


def _git(arguments: Sequence[str], folder: Path) -> str:
    result = _run(arguments, folder)
    if result.returncode != 0:
        raise RvvbenchError(f"git {arguments[0]} failed: {_last_line(result.stderr)}", where=str(folder))
    return result.stdout


def _remote(arguments: Sequence[str], url: str, folder: Path | None) -> str:
    result = _run(arguments, folder)
    if result.returncode != 0:
        raise EnvironmentLacks(
            f"the repository cannot be read: {_last_line(result.stderr)}",
            where=url,
            mend="check the address and the network",
        )
    return result.stdout


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith("fatal:")]
    return (fatal or lines or ["no message"])[0].removeprefix("fatal: ")
