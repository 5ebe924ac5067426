"""What was put into the folder of a checkpoint, written down beside it: what holds the folder at every later use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench.errors import RvvbenchError
from rvvbench.provide.file_hash import WrittenFile, write_atomically


@dataclass(frozen=True)
class Receipt:
    """The receipt of `folder`, whose content was `done` ("downloaded"). `origin`: what that was made from, as JSON."""

    folder: Path
    done: str
    origin: Mapping[str, Any]

    @property
    def path(self) -> Path:
        return self.folder.parent / f"{self.folder.name}.receipt.json"

    @property
    def mend(self) -> str:
        """How a folder that is not what it was comes right again."""
        return f"remove {self.folder}; it is {self.done} again by the next run"

    def write(self, files: Mapping[str, tuple[str, int]]) -> None:
        """Write down each file's SHA-256 and size. Raises EnvironmentLacks."""
        content = {**self.origin, "files": {n: {"sha256": sha256, "size": size} for n, (sha256, size) in files.items()}}
        write_atomically(self.path, json.dumps(content, indent=1).encode())

    def read(self) -> dict[str, WrittenFile]:
        """The files as they were written down. Raises RvvbenchError where that is lost, or is of another origin."""
        try:
            content = json.loads(self.path.read_text())
            files = {name: WrittenFile(file["sha256"], file["size"]) for name, file in content.pop("files").items()}
            origin = {key: content[key] for key in self.origin}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            cause = f"nothing says what was {self.done} into {self.folder}"
            raise RvvbenchError(cause, where=str(self.path), mend=self.mend) from error
        if origin != self.origin:
            cause = f"{self.folder} holds {_told(origin)}, not {_told(self.origin)}"
            raise RvvbenchError(cause, where=str(self.path), mend=self.mend)
        return files


def _told(origin: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in origin.items())
