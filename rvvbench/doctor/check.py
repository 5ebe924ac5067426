"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rvvbench.manifest.models import TargetKind

Status = Literal["ok", "warn", "missing", "not-needed"]
EVERY_TARGET: tuple[TargetKind, ...] = ("board", "emulated", "host")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    `status`: "missing" keeps the targets in `needs_for` from running; "warn" spoils or endangers their figures;
    "not-needed" is nothing that this machine has to have. `mend`: the exact command, None where there is nothing to do.
    """

    id: str
    title: str
    status: Status
    found: str
    needs_for: tuple[TargetKind, ...]
    why: str
    mend: str | None = None
