"""The sha256 of every wanted file of a Hub revision, without downloading the large ones."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rvvbench.errors import RvvbenchError
from rvvbench.provide.file_hash import sha256_of
from rvvbench.provide.hub import CHECKPOINT, Kind, explained, listing


def resolve_files(
    repo: str, revision: str, *, kind: Kind = CHECKPOINT, token: str | None = None, endpoint: str | None = None
) -> dict[str, str]:
    """File -> sha256 of the wanted files of `repo` at `revision` (40 hex digits).

    Large files have their sha256 in the Hub's listing; small ones are downloaded and hashed. Raises as
    `hub.download` does.
    """
    from huggingface_hub import HfApi, hf_hub_download

    try:
        found: dict[str, str] = {}
        with tempfile.TemporaryDirectory(prefix="rvvbench-lock-") as folder:
            for name, file in listing(HfApi(endpoint=endpoint, token=token), repo, revision, kind).items():
                if file.lfs is not None:
                    found[name] = file.lfs.sha256
                    continue
                path = hf_hub_download(
                    repo,
                    name,
                    repo_type=kind.repo_type,
                    revision=revision,
                    local_dir=folder,
                    endpoint=endpoint,
                    token=token,
                )
                found[name] = sha256_of(Path(path))
    except RvvbenchError:
        raise
    except Exception as error:
        raise explained(error, repo, revision, endpoint, kind) from error
    return found
