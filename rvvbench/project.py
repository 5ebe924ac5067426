"""Where the project's own files are, and where the state of this machine lives."""

from __future__ import annotations

import os
from pathlib import Path


def root() -> Path:
    """Folder that holds `manifests/`, `images/` and `kernels/`: the checkout, or the copy inside an installed package.

    `RVVBENCH_PROJECT` overrides it.
    """
    override = os.environ.get("RVVBENCH_PROJECT")
    if override:
        return Path(override).resolve()
    package = Path(__file__).resolve().parent
    installed = package / "_project"
    return installed if installed.is_dir() else package.parent


def manifests_dir() -> Path:
    """Folder of the manifests; `RVVBENCH_MANIFESTS` overrides it."""
    override = os.environ.get("RVVBENCH_MANIFESTS")
    return Path(override).resolve() if override else root() / "manifests"


def state_dir() -> Path:
    """Folder for everything that rvvbench keeps on this machine.

    `$RVVBENCH_HOME`, else `$XDG_DATA_HOME/rvvbench`, else `~/.local/share/rvvbench`.
    """
    home = os.environ.get("RVVBENCH_HOME")
    if home:
        return Path(home).resolve()
    xdg = os.environ.get("XDG_DATA_HOME")
    base = Path(xdg) if xdg else Path.home() / ".local" / "share"
    return base / "rvvbench"
