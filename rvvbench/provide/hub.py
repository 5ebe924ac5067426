"""Downloading one revision of a model repository from the Hugging Face Hub."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError

PATTERNS = ("*.safetensors", "*.json", "tokenizer*", "*.model", "merges.txt", "vocab.txt")
"""What a checkpoint consists of; other formats of the same weights and texts about the model stay where they are."""
_PROGRESS_INTERVAL_S = 1.0


def wanted(name: str) -> bool:
    """Whether a file of a repository belongs to the checkpoint: it is at the top level and matches `PATTERNS`."""
    return "/" not in name and any(fnmatch(name, pattern) for pattern in PATTERNS)


def download(
    repo: str,
    revision: str,
    folder: Path,
    *,
    token: str | None = None,
    endpoint: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Download the checkpoint files of `repo` at `revision` (40 hex digits) into the existing, empty `folder`.

    `token` and `endpoint` are huggingface_hub's own where null (HF_TOKEN, HF_ENDPOINT). Raises `ManifestError` for a
    repository or revision that does not exist or resolves to another commit, `EnvironmentLacks` for a gated repository
    without access and for a Hub that cannot be reached, `RvvbenchError` for content whose hash is not the one that the
    Hub lists.
    """
    from huggingface_hub import HfApi, snapshot_download

    if not re.fullmatch(r"[0-9a-f]{40}", revision):
        raise ManifestError(
            f"{repo}: the revision {revision!r} is not a commit",
            mend="pin 40 hex digits; `rvvbench lock` resolves a branch",
        )
    try:
        info = HfApi(endpoint=endpoint, token=token).model_info(repo, revision=revision, files_metadata=True)
        if info.sha != revision:
            raise ManifestError(
                f"{repo}: the Hub resolves the revision {revision} to {info.sha}",
                mend="pin the commit that the Hub names",
            )
        listed = {file.rfilename: file for file in info.siblings or [] if wanted(file.rfilename)}
        total = sum(file.size or 0 for file in listed.values())
        with _watch(folder, total, progress):
            snapshot_download(
                repo,
                revision=revision,
                local_dir=folder,
                allow_patterns=sorted(listed),
                endpoint=endpoint,
                token=token,
                max_workers=4,
            )
    except RvvbenchError:
        raise
    except Exception as error:
        raise explained(error, repo, revision, endpoint) from error
    # The library's book-keeping is no part of the checkpoint.
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    if not any(name.endswith(".safetensors") for name in listed):
        raise ManifestError(f"{repo} at {revision} has no safetensors weights", mend="pin a revision that has them")
    _check_listed_hashes(folder, {name: file.lfs.sha256 for name, file in listed.items() if file.lfs is not None}, repo)


def _check_listed_hashes(folder: Path, listed: dict[str, str], repo: str) -> None:
    from rvvbench.provide.file_hash import sha256_of

    for name, expected in sorted(listed.items()):
        observed = sha256_of(folder / name)
        if observed != expected:
            raise RvvbenchError(
                f"{repo}: {name} was downloaded with sha256 {observed}, the Hub lists {expected}",
                mend="run again; the download was damaged",
            )


def explained(error: Exception, repo: str, revision: str, endpoint: str | None) -> Exception:
    """The error as its user can mend it; the same error where nothing is known about it."""
    from huggingface_hub import constants
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    address = f"{(endpoint or constants.ENDPOINT).rstrip('/')}/{repo}"
    if isinstance(error, GatedRepoError):
        return EnvironmentLacks(
            f"{repo} is gated, and this machine has no access to it",
            where=address,
            mend="accept the licence on that page and set HF_TOKEN, or use `--weights synthetic`",
        )
    if isinstance(error, RepositoryNotFoundError):
        return ManifestError(
            f"the Hub knows no repository {repo} (or shows it only to a token that may see it)",
            where=address,
            mend="correct `hub: repo`, or set HF_TOKEN",
        )
    if isinstance(error, RevisionNotFoundError):
        return ManifestError(f"{repo} has no revision {revision}", where=address, mend="correct `hub: revision`")
    cause: BaseException | None = error
    while cause is not None:
        library = type(cause).__module__.partition(".")[0]
        if isinstance(cause, OfflineModeIsEnabled | ConnectionError) or (
            library in ("httpx", "httpx2", "requests") and not isinstance(cause, HfHubHTTPError)
        ):
            return EnvironmentLacks(
                f"the Hub cannot be reached to download {repo}: {type(cause).__name__}: {cause}",
                where=address,
                mend="connect this machine (HF_ENDPOINT names a mirror), or use `--weights synthetic`",
            )
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, HfHubHTTPError | LocalEntryNotFoundError):
        return EnvironmentLacks(
            f"the Hub did not serve {repo}: {error}",
            where=address,
            mend="try again later, or use `--weights synthetic`",
        )
    return error


@contextmanager
def _watch(folder: Path, total: int, progress: Callable[[int, int], None] | None) -> Iterator[None]:
    """Report the bytes on disk below `folder` while the body runs: holds for every version of the library."""
    if progress is None:
        yield
        return
    done = threading.Event()

    def report() -> None:
        while not done.wait(_PROGRESS_INTERVAL_S):
            progress(min(_bytes_below(folder), total), total)

    watcher = threading.Thread(target=report, name="hub-progress", daemon=True)
    progress(0, total)
    watcher.start()
    try:
        yield
        done.set()
        watcher.join()
        progress(total, total)
    finally:
        done.set()
        watcher.join()


def _bytes_below(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return size
