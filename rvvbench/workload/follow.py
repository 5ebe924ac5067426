"""What a measured process is doing, told from the events that it writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rvvbench.progress import Progress
from rvvbench.record.events import parse_events

POLL_S = 0.5


def told(event: Mapping[str, Any], output_len: int) -> str | None:
    """An event in words, None for one that says nothing to a person who waits."""
    match event.get("event"):
        case "process_start":
            return "starting: importing PyTorch and SGLang"
        case "model_loaded":
            return f"model loaded in {event.get('seconds', 0.0):.1f} s; warming up"
        case "warmup":
            return f"warmed up in {event.get('seconds', 0.0):.1f} s"
        case "measured_start":
            return "measuring: prefill"
        case "pass":
            return f"measuring: token {event.get('step', 0) + 1} of {output_len}"
        case "error":
            return f"failed: {event.get('message', '')}"
        case _:
            return None


@contextmanager
def following(path: Path, output_len: int, progress: Progress) -> Iterator[None]:
    """Tell `progress` of each event that is appended to `path` while the body runs.

    Only looks at the file, twice a second: nothing of it runs in the container.
    """
    done = threading.Event()

    def follow() -> None:
        read = 0
        while not done.wait(POLL_S):
            try:
                data = path.read_bytes()
            except OSError:
                continue
            whole = data[: data.rfind(b"\n") + 1]
            for event in parse_events(whole[read:]).events:
                text = told(event, output_len)
                if text is not None:
                    progress.line(text)
            read = len(whole)

    watcher = threading.Thread(target=follow, name="events", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
