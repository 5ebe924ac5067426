"""Downloading one revision of a model or data set from the Hugging Face Hub."""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rvvbench.errors import EnvironmentLacks, ManifestError, RvvbenchError

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoSibling

PATTERNS = ("*.safetensors", "*.json", "tokenizer*", "*.model", "merges.txt", "vocab.txt")
"""What a checkpoint consists of; other formats of the same weights and texts about the model stay where they are."""
_PROGRESS_INTERVAL_S = 1.0


def wanted(name: str) -> bool:
    """Whether a file of a repository belongs to the checkpoint: it is at the top level and matches `PATTERNS`."""
    return "/" not in name and any(fnmatch(name, pattern) for pattern in PATTERNS)


@dataclass(frozen=True)
class Kind:
    """What sort of repository it is (the Hub keeps models and data sets in spaces of their own): `files` are the wanted
    ones by name, null for those of a checkpoint. `instead`: what a user who cannot get it may use.
    """

    repo_type: Literal["model", "dataset"]
    files: Collection[str] | None
    instead: str

    def wants(self, name: str) -> bool:
        """Whether a file of the repository is wanted."""
        return wanted(name) if self.files is None else name in self.files


CHECKPOINT = Kind("model", None, "use `--weights synthetic`")


def download(
    repo: str,
    revision: str,
    folder: Path,
    *,
    kind: Kind = CHECKPOINT,
    token: str | None = None,
    endpoint: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Download the wanted files of `repo` at `revision` (40 hex digits) into the existing, empty `folder`.

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
        listed = listing(HfApi(endpoint=endpoint, token=token), repo, revision, kind)
        total = sum(file.size or 0 for file in listed.values())
        with _watch(folder, total, progress):
            snapshot_download(
                repo,
                repo_type=kind.repo_type,
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
        raise explained(error, repo, revision, endpoint, kind) from error
    # The library's book-keeping is no part of what was wanted.
    shutil.rmtree(folder / ".cache", ignore_errors=True)
    if kind.files is None and not any(name.endswith(".safetensors") for name in listed):
        raise ManifestError(f"{repo} at {revision} has no safetensors weights", mend="pin a revision that has them")
    missing = sorted(set(kind.files or ()) - listed.keys())
    if missing:
        raise ManifestError(f"{repo} at {revision} has no {', '.join(missing)}", mend="pin a revision that has them")
    _check_listed_hashes(folder, {name: file.lfs.sha256 for name, file in listed.items() if file.lfs is not None}, repo)


def listing(api: HfApi, repo: str, revision: str, kind: Kind) -> dict[str, RepoSibling]:
    """The wanted files by name, as the Hub describes them. Raises ManifestError for a revision that is another commit,
    and what the library raises.
    """
    of = api.model_info if kind.repo_type == "model" else api.dataset_info
    info = of(repo, revision=revision, files_metadata=True)
    if info.sha != revision:
        raise ManifestError(
            f"{repo}: the Hub resolves the revision {revision} to {info.sha}",
            mend="pin the commit that the Hub names",
        )
    return {file.rfilename: file for file in info.siblings or [] if kind.wants(file.rfilename)}


def _check_listed_hashes(folder: Path, listed: dict[str, str], repo: str) -> None:
    from rvvbench.provide.file_hash import sha256_of

    for name, expected in sorted(listed.items()):
        observed = sha256_of(folder / name)
        if observed != expected:
            raise RvvbenchError(
                f"{repo}: {name} was downloaded with sha256 {observed}, the Hub lists {expected}",
                mend="run again; the download was damaged",
            )


def explained(error: Exception, repo: str, revision: str, endpoint: str | None, kind: Kind = CHECKPOINT) -> Exception:
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

    space = "" if kind.repo_type == "model" else "datasets/"
    address = f"{(endpoint or constants.ENDPOINT).rstrip('/')}/{space}{repo}"
    if isinstance(error, GatedRepoError):
        return EnvironmentLacks(
            f"{repo} is gated, and this machine has no access to it",
            where=address,
            mend=f"accept the licence on that page and set HF_TOKEN, or {kind.instead}",
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
                mend=f"connect this machine (HF_ENDPOINT names a mirror), or {kind.instead}",
            )
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, HfHubHTTPError | LocalEntryNotFoundError):
        return EnvironmentLacks(
            f"the Hub did not serve {repo}: {error}",
            where=address,
            mend=f"try again later, or {kind.instead}",
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
