"""Standing beside the repetitions of a run: the gate before each, the sampler during it, and what a record keeps."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rvvbench.manifest.models import TargetKind
from rvvbench.observe.conclusion import SCHEMA, conclude
from rvvbench.observe.conditions import Conditions, snapshot
from rvvbench.observe.finding import Finding
from rvvbench.observe.gate import Limits, Waited, limits_of, wait_until_ready
from rvvbench.observe.kernel_files import Roots, read_table
from rvvbench.observe.machine import machine_facts
from rvvbench.observe.narrow import enclosing
from rvvbench.observe.peaks import peaks_until
from rvvbench.observe.sampler import Edges, Pace, Sample, sampling
from rvvbench.observe.stretch import Window
from rvvbench.progress import Progress
from rvvbench.project import writing

GATE_DEADLINES_S: Mapping[TargetKind, float] = {"board": 120.0, "emulated": 30.0, "host": 30.0}
"""A board cools down in a minute or two. A machine that somebody works at is never at rest: waiting long for it only
costs time, and no timing of it is published."""

LEAST_PSS_INTERVAL_S = 10.0
TELL_EVERY_S = 10.0


@dataclass
class Observer:
    """Made once for a run, so that every repetition is held to the machine as it was at the start.

    `governors` {policy: name} are those of the start; None where there is no cpufreq.
    """

    target: TargetKind
    pace: Pace
    limits: Limits
    governors: Mapping[str, str] | None
    gate_deadline_s: float
    edges: Edges = field(default_factory=Edges)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    @classmethod
    def for_run(
        cls,
        target: TargetKind,
        *,
        interval_s: float = 1.0,
        pss_interval_s: float | None = None,
        gate_deadline_s: float | None = None,
        machine: Mapping[str, Any] | None = None,
    ) -> Observer:
        """An observer for the machine as it is now; `machine` are its facts (`machine_facts`), asked for where None.

        `pss_interval_s`: how often PSS is read, for which the kernel walks every page of the measured processes; None
        (never) for what must not be disturbed, else at least 10 s. `gate_deadline_s`: how long to wait for the machine
        before a repetition, where None 120 s on a board and 30 s elsewhere.
        """
        if pss_interval_s is not None and pss_interval_s < LEAST_PSS_INTERVAL_S:
            raise ValueError(f"PSS every {pss_interval_s} s would disturb what is measured")
        facts = machine_facts() if machine is None else machine
        deadline_s = GATE_DEADLINES_S[target] if gate_deadline_s is None else gate_deadline_s
        return cls(target, Pace(interval_s, pss_interval_s), limits_of(facts), facts["governors"], deadline_s)

    def before(self, progress: Progress) -> Waited:
        """Wait until the machine is at rest and cool, or the deadline is over; `progress` is told what for.

        Where the deadline went by in vain on a machine that is no board, it is not waited for again: each later
        repetition only looks (1 s). Ctrl-C ends the wait.
        """
        teller = _Teller(progress, self.gate_deadline_s)
        edges = self.edges
        waited = wait_until_ready(
            lambda: edges.moment(edges.roots),
            self.clock,
            self.sleep,
            self.gate_deadline_s,
            self.limits,
            tell=teller.tell,
        )
        if waited.unready:
            progress.line(f"the machine is not at rest, going on: {_listed(waited.unready)}")
            if self.target != "board":
                self.gate_deadline_s = 0.0
        return waited

    def watching(self, samples_path: Path, waited: Waited | None = None) -> Watch:
        """What to hand to `run_container` as `observe`, right before it: the conditions before the run are read here.

        Every sample is written to `samples_path` (JSON lines) as it is taken. `waited` is what `before` returned, None
        where it was not called.
        """
        return Watch(self, samples_path, waited, snapshot(self.edges.roots))


@dataclass
class Watch:
    """The watch over one container. Called with the container's pid, it samples while the body runs."""

    observer: Observer
    samples_path: Path
    waited: Waited | None
    conditions_before: Conditions
    conditions_after: Conditions | None = None
    samples: list[Sample] = field(default_factory=list)

    @contextmanager
    def __call__(self, pid: int) -> Iterator[None]:
        """Sample the tree below `pid` while the body runs; the conditions after the run are read at the end.

        Raises EnvironmentLacks where the samples' file cannot be made. What goes wrong later ends the sampling only.
        """
        edges = self.observer.edges
        with writing(self.samples_path):
            file = self.samples_path.open("ab", buffering=0)

        def emit(sample: Sample) -> None:
            self.samples.append(sample)
            line = f"{json.dumps(sample)}\n".encode()
            if file.write(line) != len(line):
                raise OSError(f"{self.samples_path.name}: no room for a whole line")

        elsewhere = f"process {pid} of this machine is not the container's: its engine runs elsewhere"
        with file:
            try:
                if _is_of_a_container(pid, edges.roots):
                    with sampling(pid, emit, self.observer.pace, edges):
                        yield
                else:
                    with suppress(OSError):
                        emit(self._unwatched(elsewhere))
                    yield
            finally:
                self.conditions_after = snapshot(edges.roots)

    def observation(self, window: Window | None) -> dict[str, Any]:
        """What a record keeps of it, as JSON data (schema `rvvbench/observation/1`), judged over `window`.

        `window`: start and end of what was measured (`window_of` tells it from the events), None for the whole
        process. May be asked for several windows of one process.
        """
        # A look now would show what others did since: of a container that nobody watched, nothing is known.
        after = self.conditions_after or self.conditions_before
        samples = self.samples or [self._unwatched("the container had ended before it could be watched")]
        target, governors = self.observer.target, self.observer.governors
        kept = enclosing(self.conditions_before, after, samples, window)
        return {
            "schema": SCHEMA,
            "target": target,
            "gate": None if self.waited is None else self.waited.plain(),
            "before": self.conditions_before.plain(),
            "after": after.plain(),
            "governors": None if governors is None else dict(governors),
            "window": None if window is None else list(window),
            "samples": kept,
            "peaks": peaks_until(samples, None if window is None else window[1], emulated=target == "emulated"),
            **conclude(target, self.waited, self.conditions_before, after, kept, window, governors),
        }

    def _unwatched(self, why: str) -> Sample:
        """What the sampler would have said, had it been there to fail."""
        return {"event": "sampler_end", "t_ns": self.observer.edges.clock_ns(), "samples": 0, "error": why}


@dataclass
class _Teller:
    """Tells a progress what the gate waits for: when that changes, and now and then."""

    progress: Progress
    deadline_s: float
    told: tuple[str, ...] = ()
    told_s: float = 0.0

    def tell(self, waited_s: float, found: Sequence[Finding]) -> None:
        ids = tuple(finding.id for finding in found)
        if ids == self.told and waited_s < self.told_s + TELL_EVERY_S:
            return
        self.told, self.told_s = ids, waited_s
        so_far = f"{waited_s:.0f} s of at most {self.deadline_s:.0f} s"
        self.progress.line(f"waiting for the machine to be at rest ({so_far}): {_listed(found)}")


def _listed(found: Sequence[Finding]) -> str:
    return "; ".join(finding.text for finding in found)


def _is_of_a_container(pid: int, roots: Roots) -> bool:
    """Whether `pid`, as this machine numbers processes, is the first process of a pid namespace of its own.

    The engine may count in another namespace than we do (its socket mounted into a container, say); then the number
    is some other process's here. Where the kernel does not tell, or the process has ended, nothing speaks against it.
    """
    numbers = read_table(roots.proc / str(pid) / "status", ":").get("NSpid", "").split()
    return not numbers or (len(numbers) > 1 and numbers[-1] == "1")
