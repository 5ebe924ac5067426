"""Events (`rvvbench/events/1`): one JSON object a line, in the file as soon as it is written.

Supervisor and measured process append to one file. Each event is a single write to a descriptor opened with O_APPEND,
so lines never mix, and a process that dies keeps everything it had written.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from .failure import NotWritten

SCHEMA = "rvvbench/events/1"


class Events:
    """A writer of events. `clock` gives nanoseconds of CLOCK_MONOTONIC, which all processes of a machine share."""

    def __init__(self, path: str | Path, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock
        self._path = path
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def write(self, event: str, *, t_ns: int | None = None, **fields: Any) -> None:
        """Append one event. `t_ns` when it happened, where that was earlier than now. Raises NotWritten."""
        record = {"event": event, "t_ns": self._clock() if t_ns is None else t_ns, "pid": os.getpid(), **fields}
        line = json.dumps(record, separators=(",", ":"), allow_nan=False).encode() + b"\n"
        try:
            while line:  # a short write happens only when the disk is full; the next attempt then raises
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            raise NotWritten(f"cannot write the event {event} to {self._path}: {error.strerror}") from error

    def close(self) -> None:
        os.close(self._descriptor)

    def __enter__(self) -> Events:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
