"""Where the project's own files are, and where the state of this machine lives."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from rvvbench.errors import EnvironmentLacks

# What the file system says where a path cannot be written; errors of the network have other numbers or none.
_UNWRITABLE = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST,
    errno.ENAMETOOLONG, errno.EIO,
}  # fmt: skip


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


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Within, `path` or files below it are written; where that cannot be done, raises EnvironmentLacks that says so."""
    try:
        yield
    except OSError as error:
        if error.errno not in _UNWRITABLE:
            raise
        raise EnvironmentLacks(
            f"cannot write: {error.strerror}",
            where=str(error.filename or path),
            mend="free space there, or set RVVBENCH_HOME to a folder that can be written",
        ) from error
