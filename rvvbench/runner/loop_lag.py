"""How late the client's own event loop is: a stalled client looks like a slow server, and only this tells them apart.

A timer is due every 50 ms, and its lateness is the time in which the loop could do nothing else either. A stall shows
with what of it is left when the timer is due, so one of less than 50 ms may not show whole, or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

PERIOD_NS = 50_000_000
# Below this a timer is late by itself: the granularity of the loop's sleep, and the work on a token.
USUAL_NS = 5_000_000
_NS_PER_S = 1e9


class LoopLag:
    """Watches the running loop from its making to `stop`. `clock` gives nanoseconds of the time that the loop keeps."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._max_ns = 0
        self._sum_ns = 0
        self._wait()

    def stop(self) -> dict[str, float]:
        """The fields for `load_end`, in s: the largest lateness, and the sum of all that were over 5 ms."""
        self._timer.cancel()
        self._count()
        return {"client_lag_max_s": self._max_ns / _NS_PER_S, "client_lag_sum_s": self._sum_ns / _NS_PER_S}

    def _wait(self) -> None:
        self._due_ns = self._clock() + PERIOD_NS
        self._timer = self._loop.call_later(PERIOD_NS / _NS_PER_S, self._tick)

    def _tick(self) -> None:
        self._count()
        self._wait()

    def _count(self) -> None:
        late_ns = self._clock() - self._due_ns
        self._max_ns = max(self._max_ns, late_ns)
        if late_ns > USUAL_NS:
            self._sum_ns += late_ns
