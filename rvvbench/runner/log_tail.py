"""The end of a log: what an error shows of it."""

from __future__ import annotations

import os
from pathlib import Path

LINES = 40
_BYTES = 65536
_LINE_CHARACTERS = 500


def log_tail(path: Path) -> list[str]:
    """The last lines, at most 40; none where the file cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _BYTES))
            data = file.read()
    except OSError:
        return []
    lines = data.decode("utf-8", "replace").splitlines()
    if size > _BYTES:
        lines = lines[1:]  # the first is cut
    return [line[:_LINE_CHARACTERS] for line in lines[-LINES:]]
