"""Sources from git, at one exact commit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError

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
    server serves single commits, else the whole branch. Raises `ManifestError` for a commit that the repository or
    branch does not have, `EnvironmentLacks` as `resolve_branch` does, `RvvbenchError` for a folder that holds something
    else or was changed.
    """
    if not _COMMIT.fullmatch(commit):
        raise ManifestError(f"{commit!r} is not a commit", mend="pin 40 hex digits: `rvvbench lock`")
    if folder.exists():
        verify_tree(folder, commit)
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        scratch.chmod(0o755)
        _git(["init", "--quiet"], scratch)
        _git(["remote", "add", "origin", url], scratch)
        # The same bytes on every machine, whatever the user's own configuration says.
        _git(["config", "core.autocrlf", "false"], scratch)
        if _run(["fetch", "--quiet", "--depth", "1", "origin", commit], scratch).returncode != 0:
            refspec = f"+refs/heads/{branch}:refs/remotes/origin/{branch}"
            resolve_branch(url, branch)
            _remote(["fetch", "--quiet", "origin", refspec], url, scratch)
        if _run(["cat-file", "-e", f"{commit}^{{commit}}"], scratch).returncode != 0:
            raise ManifestError(
                f"branch {branch} of {url} does not have the commit {commit}",
                mend="pin a commit of that branch: `rvvbench lock` resolves its tip",
            )
        _git(["checkout", "--quiet", "--detach", commit], scratch)
        verify_tree(scratch, commit)
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return folder


def verify_tree(folder: Path, commit: str) -> None:
    """Check that `folder` is a work tree at exactly `commit` without changes or files of its own; `RvvbenchError` if
    not.
    """
    mend = f"remove {folder}: the next run clones it again"
    top = _run(["rev-parse", "--show-toplevel"], folder)
    if top.returncode != 0 or Path(top.stdout.strip()).resolve() != folder.resolve():
        raise RvvbenchError("this folder is no git work tree", where=str(folder), mend=mend)
    head = _git(["rev-parse", "HEAD"], folder).strip()
    if head != commit:
        raise RvvbenchError(f"the work tree is at {head}, pinned is {commit}", where=str(folder), mend=mend)
    changed = _git(["status", "--porcelain", "--untracked-files=all"], folder).splitlines()
    if changed:
        shown = ", ".join(line[3:] for line in changed[:5])
        raise RvvbenchError(
            f"the work tree has {len(changed)} changed or added files ({shown}), so it is not what {commit} says",
            where=str(folder),
            mend=f"commit the changes to a branch and pin it, or {mend}",
        )


def _run(arguments: Sequence[str], folder: Path | None) -> subprocess.CompletedProcess[str]:
    # Never ask for a password, and never take a hook or a directory of the caller's own repository for ours.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment.update(GIT_TERMINAL_PROMPT="0", LC_ALL="C")
    command = ["git", "-c", "core.hooksPath=/dev/null", *arguments]
    try:
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
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
