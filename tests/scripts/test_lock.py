"""requirements.lock: what it must hold, and what it must not."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def blocks() -> dict[str, list[str]]:
    """{name: the text of each pinned version}; a package has one block for each range of Python versions."""
    found: dict[str, list[str]] = {}
    for block in re.split(r"\n(?=[a-z])", LOCK):
        if not block.startswith("#"):
            found.setdefault(name_of(block), []).append(block)
    return found


def test_everything_the_project_asks_for_is_locked() -> None:
    project, build = PROJECT["project"], PROJECT["build-system"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["dev"], *build["requires"], "editables"]
    assert {name_of(requirement) for requirement in asked} <= blocks().keys()


def test_every_version_has_hashes() -> None:
    for name, pinned in blocks().items():
        for block in pinned:
            assert re.match(rf"(?i){name.replace('-', '[-_]')}==", block), block
            assert "--hash=sha256:" in block, block


def test_no_host_and_no_path_stands_in_it() -> None:
    assert not re.search(r"://|file:|index-url|/tmp|@ ", LOCK)
