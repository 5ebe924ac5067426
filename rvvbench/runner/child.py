"""A child process in a group of its own, waited for without a thread or a signal handler, and always ended."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import memory

_NS_PER_S = 1e9
_POLL_S = 0.02
# For what a process that ended had started, and that ends by itself.
_LEFTOVERS_S = 0.5


class Child:
    """Its stdout and stderr go to `log`. `argv` [program, ...]."""

    def __init__(self, argv: Sequence[str], *, environ: Mapping[str, str], log: Path) -> None:
        self.argv = list(argv)
        self.log = log
        self.started_ns = time.monotonic_ns()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self.argv,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Also the id of its process group."""
        return self._process.pid

    def age_s(self, at_ns: int | None = None) -> float:
        """Seconds from its start to `at_ns`, or to now."""
        return ((time.monotonic_ns() if at_ns is None else at_ns) - self.started_ns) / _NS_PER_S

    def code(self) -> int | None:
        """The exit code, minus the signal that killed it, or None while it runs."""
        return self._process.poll()

    async def ended_within(self, limit_s: float) -> bool:
        """Wait for its end, at most so many seconds."""
        due = time.monotonic() + limit_s
        while self.code() is None:
            if time.monotonic() >= due:
                return False
            await asyncio.sleep(_POLL_S)
        return True

    async def stop(self, limit_s: float) -> dict[str, Any]:
        """SIGTERM, after `limit_s` SIGKILL to the whole group; then nothing of it is left. What was done, as the fields
        of a `server_end` event.
        """
        start = time.monotonic()
        sent: list[str] = []
        try:
            if self.code() is None:
                self._process.send_signal(signal.SIGTERM)
                sent.append("SIGTERM")
                await self.ended_within(limit_s)
            due = time.monotonic() + _LEFTOVERS_S
            while self.code() is not None and self._group_lives() and time.monotonic() < due:
                await asyncio.sleep(_POLL_S)
        finally:
            if self.kill():
                sent.append("SIGKILL")
        code = self.code()
        return {
            "exit_code": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "sent": sent,
            "seconds": time.monotonic() - start,
        }

    def kill(self) -> bool:
        """SIGKILL to what is left of the group; whether there was anything."""
        alive = self._group_lives()
        if alive:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        return alive

    def _group_lives(self) -> bool:
        return self.code() is None or bool(memory.group(self.pid))
