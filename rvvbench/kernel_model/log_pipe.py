"""A named pipe that an emulator in a container writes its log into, read while it runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

_PIECE_BYTES = 1 << 20
_PAUSE_S = 0.002


class Reader(Protocol):
    """What makes something of a log."""

    @property
    def stretches(self) -> int:
        """Stretches between marks that count, so far."""

    def feed(self, data: bytes) -> None:
        """The next piece of the log, cut anywhere."""


@contextlib.contextmanager
def read(log: Path, reader: Reader, shown: Callable[[], None]) -> Iterator[None]:
    """Reads the named pipe into `reader` until the block is left; raises what reading raised.

    `shown` is called when another stretch has begun.
    """
    descriptor = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    with contextlib.suppress(OSError):
        # As much as the emulator writes in a pause; a machine that does not allow it is slower, and no more.
        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _PIECE_BYTES)
    over = threading.Event()
    failed: list[Exception] = []

    def follow() -> None:
        stretches = 0
        while True:
            last = over.is_set()
            try:
                piece = os.read(descriptor, _PIECE_BYTES)
            except BlockingIOError:
                piece = b""
            if not piece:
                if last:
                    return
                time.sleep(_PAUSE_S)
            elif not failed:
                # After a failure it is read all the same, or the emulator would wait for ever.
                try:
                    reader.feed(piece)
                except Exception as error:
                    failed.append(error)
            if reader.stretches != stretches:
                stretches = reader.stretches
                shown()

    thread = threading.Thread(target=follow, name="trace")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        os.close(descriptor)
    if failed:
        raise failed[0]
