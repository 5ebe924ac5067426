"""The one family of errors that a user of rvvbench sees.

Every error says what is wrong (`cause`), where (`where`: a file:line, a path, a container), and what mends it
(`mend`: a command or an edit). They are rendered in `rvvbench.cli` and nowhere else.
"""

from __future__ import annotations


class RvvbenchError(Exception):
    """Base of the family. `exit_code` is what the process ends with when nobody catches it."""

    exit_code = 1

    def __init__(self, cause: str, *, where: str | None = None, mend: str | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.where = where
        self.mend = mend

    def __str__(self) -> str:
        parts = [self.cause]
        if self.where:
            parts.append(f"at {self.where}")
        if self.mend:
            parts.append(f"mend: {self.mend}")
        return "; ".join(parts)


class CheckFailed(RvvbenchError):
    """A check that the user asked for did not hold (verification, regression, an invalid row)."""

    exit_code = 1


class UsageError(RvvbenchError):
    """The command line is wrong."""

    exit_code = 2


class ManifestError(RvvbenchError):
    """A manifest or lock file is wrong, or a pin in it does not hold."""

    exit_code = 2


class EnvironmentLacks(RvvbenchError):
    """The machine lacks something that the command needs."""

    exit_code = 3
