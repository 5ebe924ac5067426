"""What the timing driver says: seconds and hardware counters of operators on the machine that ran it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.cases import Case


@dataclass(frozen=True)
class Count:
    """One hardware counter for one call, or None and why it counts nothing."""

    per_call: float | None
    reason: str | None


@dataclass(frozen=True)
class Timed:
    """One case on one thread. `seconds_per_call` are all repetitions, in the order they were made."""

    case: Case
    kernel: str
    calls: int
    seconds_per_call: tuple[float, ...]
    counters: Mapping[str, Count]

    @property
    def median_s(self) -> float:
        """The median of the repetitions (the lower of the middle two)."""
        return sorted(self.seconds_per_call)[(len(self.seconds_per_call) - 1) // 2]

    @property
    def macs_per_cycle(self) -> Count:
        """Multiply-adds per counted cycle, None where cycles are not counted."""
        cycles = self.counters["cycles"]
        return Count(self.case.macs / cycles.per_call if cycles.per_call else None, cycles.reason)

    def as_data(self) -> dict[str, Any]:
        """For JSON output."""
        return {
            "case": self.case.whole,
            "model": self.case.model,
            "layer": self.case.layer,
            "kernel": self.kernel,
            "macs": self.case.macs,
            "moved_bytes": self.case.moved_bytes,
            "calls": self.calls,
            "seconds_per_call": list(self.seconds_per_call),
            "median_s": self.median_s,
            "macs_per_s": self.case.macs / self.median_s,
            "bytes_per_s": self.case.moved_bytes / self.median_s,
            "macs_per_cycle": asdict(self.macs_per_cycle),
            "counters": {name: asdict(count) for name, count in self.counters.items()},
        }


def time_cases(driver: Path, cases: Sequence[Case], *, repeats: int, min_s: float) -> list[Timed]:
    """Run the driver on this machine; raises RvvbenchError with its words where it fails."""
    command = [str(driver), str(repeats), str(max(1, round(min_s * 1e9))), *(case.whole for case in cases)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RvvbenchError(
            f"the timing driver ended with {done.returncode}: {done.stderr.strip()[-1000:]}", where=str(driver)
        )
    return [parse_timed(case, line) for case, line in zip(cases, done.stdout.splitlines(), strict=True)]


def parse_timed(case: Case, line: str) -> Timed:
    """One line of the driver. Raises RvvbenchError where the driver refused the case."""
    said = json.loads(line)
    if "error" in said:
        raise RvvbenchError(f"the timing driver refuses a case: {said['error']}", where=case.whole)
    calls = int(said["calls"])
    return Timed(
        case,
        str(said["kernel"]),
        calls,
        tuple(int(ns) / 1e9 / calls for ns in said["ns"]),
        {name: Count(count["per_call"], count["reason"]) for name, count in said["counters"].items()},
    )
