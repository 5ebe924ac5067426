"""A private copy of the project's manifests, that a test may break."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rvvbench import project


@pytest.fixture
def manifests(tmp_path: Path) -> Path:
    copy = tmp_path / "manifests"
    shutil.copytree(project.manifests_dir(), copy)
    return copy
