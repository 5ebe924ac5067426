"""Cleaning up that an impatient Ctrl-C does not stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Within, SIGINT is ignored. For short clean-ups only; SIGTERM still ends the process.

    Signals reach the main thread: elsewhere nothing needs to be done.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        # None: the handler was not set by Python, and cannot be set by it either.
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
