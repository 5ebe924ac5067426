"""Why a measured process stops early, with the exit code that says so."""

from __future__ import annotations

import signal


class RunnerError(Exception):
    """The run cannot go on; the message says what, where and what mends it. `type` is that of the `error` event of a
    serving run.
    """

    exit_code = 1
    type = "runner"


class SpecError(RunnerError):
    """The spec is not one that this runner understands."""

    exit_code = 2


class PinFailed(RunnerError):
    """What is here is not what the spec pins. Nothing was measured."""

    exit_code = 3
    type = "pin"


class NotWritten(RunnerError):
    """An event cannot be written, as on a full disk. No event can tell of it: what the runner prints then must."""


class ServingFailed(RunnerError):
    """A serving run failed in a way that has a name: the `type` of its `error` event."""

    def __init__(self, type: str, message: str) -> None:
        super().__init__(message)
        self.type = type


class Terminated(RunnerError):
    """The runner was told to stop by a signal."""

    type = "Terminated"

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number
