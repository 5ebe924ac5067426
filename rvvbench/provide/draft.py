"""Folders that appear whole: made as a draft beside their place, then renamed to it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rvvbench.project import writing


@contextmanager
def draft_of(place: Path) -> Iterator[Path]:
    """A new folder beside `place`, for the caller to rename to `place`; removed at the end where that did not happen.

    For holders of the lock `place.name` (see `exclusive`): that is what makes every draft that is found here the
    remains of a process that was killed, and those are removed first. Raises EnvironmentLacks where nothing can be
    written.
    """
    draft = place.parent / f".{place.name}.draft"
    # The second form is what earlier versions left.
    left = re.compile(rf"\.{re.escape(place.name)}\.(draft|[a-z0-9_]{{8}})")
    for found in place.parent.iterdir():
        if left.fullmatch(found.name) and found.is_dir():
            shutil.rmtree(found, ignore_errors=True)
    with writing(draft):
        draft.mkdir()
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)
