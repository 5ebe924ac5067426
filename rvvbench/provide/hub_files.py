"""The sha256 of every checkpoint file of a Hub revision, without downloading the weights."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rvvbench.errors import ManifestError, RvvbenchError
from rvvbench.provide.file_hash import sha256_of
from rvvbench.provide.hub import explained, wanted


def resolve_files(repo: str, revision: str, *, token: str | None = None, endpoint: str | None = None) -> dict[str, str]:
    """File -> sha256 of the checkpoint files of `repo` at `revision` (40 hex digits).

    Large files have their sha256 in the Hub's listing; small ones are downloaded and hashed. Raises as
    `hub.download` does.
    """
    from huggingface_hub import HfApi, hf_hub_download

    try:
        info = HfApi(endpoint=endpoint, token=token).model_info(repo, revision=revision, files_metadata=True)
        if info.sha != revision:
            raise ManifestError(f"{repo}: the Hub resolves the revision {revision} to {info.sha}")
        found: dict[str, str] = {}
        with tempfile.TemporaryDirectory(prefix="rvvbench-lock-") as folder:
            for file in info.siblings or []:
                if not wanted(file.rfilename):
                    continue
                if file.lfs is not None:
                    found[file.rfilename] = file.lfs.sha256
                    continue
                path = hf_hub_download(
                    repo, file.rfilename, revision=revision, local_dir=folder, endpoint=endpoint, token=token
                )
                found[file.rfilename] = sha256_of(Path(path))
    except RvvbenchError:
        raise
    except Exception as error:
        raise explained(error, repo, revision, endpoint) from error
    return found
