"""Moments that Ctrl-C must not cut in two."""

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


@contextmanager
def held_back() -> Iterator[None]:
    """Within, what ends the harness (SIGINT; SIGTERM and SIGHUP where Python handles them) waits; it comes right after.

    For making something that needs cleaning up: no moment is left between its coming to be and its being known.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    handlers = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        if callable(handler := signal.getsignal(number))
    }
    for number in handlers:
        signal.signal(number, lambda caught, _frame: waiting.append(caught))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for caught in waiting[:1]:
        signal.raise_signal(caught)
