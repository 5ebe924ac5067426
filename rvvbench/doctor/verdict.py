"""Whether each target can run, from what the checks say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rvvbench.doctor.check import EVERY_TARGET, Check
from rvvbench.manifest.models import TargetKind


@dataclass(frozen=True)
class Verdict:
    """`reason`: what is missing, or what endangers figures; None when all is well. `mend`: commands, in order."""

    can_run: bool
    reason: str | None
    mend: tuple[str, ...]


def verdicts(checks: Sequence[Check]) -> dict[TargetKind, Verdict]:
    """A verdict for each target. Pure."""
    return {target: _verdict(target, checks) for target in EVERY_TARGET}


def _verdict(target: TargetKind, checks: Sequence[Check]) -> Verdict:
    concerned = [check for check in checks if target in check.needs_for]
    missing = [check for check in concerned if check.status == "missing"]
    warned = [check for check in concerned if check.status == "warn"]
    blame = missing or warned
    reason = "; ".join(f"{check.title}: {check.found}" for check in blame) or None
    mend = tuple(dict.fromkeys(check.mend for check in blame if check.mend))
    if reason is not None and not missing:
        reason = f"but {reason}"
    return Verdict(not missing, reason, mend)
