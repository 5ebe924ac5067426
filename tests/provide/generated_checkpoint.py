"""A checkpoint that the tests of this folder share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench.provide.synthetic import WrittenFile


@dataclass(frozen=True)
class Generated:
    """A manifest as read from its YAML, and the checkpoint generated from it."""

    manifest: dict[str, Any]
    folder: Path
    files: dict[str, WrittenFile]

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.manifest["config"])

    @property
    def seed(self) -> int:
        return int(self.manifest["synthetic"]["seed"])
