"""An event loop whose clock moves only when nothing is left to do: hours pass at once, and always in the same way."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
START_NS = 1_000 * 10**9


class _Selector(selectors.SelectSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now_ns = START_NS

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready:
            return ready
        if timeout is None:
            raise RuntimeError("the event loop would wait for ever")
        self.now_ns += round(timeout * 1e9)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """`clock` is what to inject; the loop's own timers follow it."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_ns / 1e9

    def clock(self) -> int:
        return self._virtual.now_ns

    def pass_ns(self, ns: int) -> None:
        """Time that a step of the program takes."""
        self._virtual.now_ns += ns


def run(main: Coroutine[Any, Any, T]) -> T:
    """As `asyncio.run`, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def clock() -> int:
    """The virtual nanoseconds of the running loop."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.clock()
