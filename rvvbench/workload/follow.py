"""What a process in a container is doing, told from the events that it writes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench.progress import Progress
from rvvbench.record.events import parse_events

POLL_S = 0.5


@dataclass(frozen=True)
class Say:
    """An event in words. `stays`: a result, to be read later too."""

    text: str
    stays: bool = False


Told = Callable[[Mapping[str, Any]], Say | None]
"""An event in words, None for one that says nothing to a person who waits."""


@contextmanager
def following(path: Path, told: Told, progress: Progress) -> Iterator[None]:
    """Tell `progress` of each event that is appended to `path` while the body runs, and of the last ones after it.

    Only looks at the file, twice a second: nothing of it runs in the container.
    """
    done = threading.Event()
    read = 0

    def look() -> None:
        nonlocal read
        try:
            with path.open("rb") as file:
                file.seek(read)
                data = file.read()
        except OSError:
            return
        whole = data[: data.rfind(b"\n") + 1]
        for event in parse_events(whole).events:
            said = told(event)
            if said is not None:
                (progress.result if said.stays else progress.line)(said.text)
        read += len(whole)

    def follow() -> None:
        while not done.wait(POLL_S):
            look()

    watcher = threading.Thread(target=follow, name="events", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        look()
