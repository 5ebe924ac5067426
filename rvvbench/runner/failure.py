"""Why a measured process stops early, with the exit code that says so."""

from __future__ import annotations


class RunnerError(Exception):
    """The run cannot go on; the message says what, where and what mends it."""

    exit_code = 1


class SpecError(RunnerError):
    """The spec is not one that this runner understands."""

    exit_code = 2


class PinFailed(RunnerError):
    """What is here is not what the spec pins. Nothing was measured."""

    exit_code = 3
