"""What happened to the machine over a stretch of a run: the looks at it that enclose the stretch, and what they say.

Pure. The looks are the conditions before and after the run and, between them, the sampler's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rvvbench.observe.conditions import Change, Conditions, Cooling, difference
from rvvbench.observe.moment import conditions_of, slows_cpus

MIN_OTHERS_S = 1.0
"""Over less time the 10 ms ticks of /proc/stat are too coarse to tell others' share: with 8 CPUs, 0.08 CPU at 1 s."""

Window = tuple[int, int]
"""Start and end of what was measured, CLOCK_MONOTONIC, ns (see `window_of`)."""


def window_of(events: Sequence[Mapping[str, Any]], load: str | None = None) -> Window | None:
    """What the runner's events say was measured: from `measured_start` to `measured_end`, or the load of this name.

    None where either end is missing, is there twice, or the ends are out of order: no window can be told.
    """
    first, last = ("measured_start", "measured_end") if load is None else ("load_start", "load_end")
    ends = [
        [event.get("t_ns") for event in events if event.get("event") == name and event.get("load") == load]
        for name in (first, last)
    ]
    match ends:
        case [[int(start_ns)], [int(end_ns)]] if start_ns <= end_ns:
            return start_ns, end_ns
    return None


@dataclass(frozen=True)
class Look:
    """The machine at one moment; CPU times (seconds since boot) and the tree's where a sample tells them.

    `sample` is its place in the samples that it comes from, None for the looks before and after the run.
    """

    conditions: Conditions
    busy_s: float | None = None
    steal_s: float | None = None
    tree_cpu_s: float | None = None
    sample: int | None = None

    @property
    def t_s(self) -> float:
        return self.conditions.monotonic_s


@dataclass(frozen=True)
class Others:
    """CPUs' worth of work, over `seconds`: `cores` of processes outside the tree, `steal_cores` that a hypervisor
    took.
    """

    cores: float
    steal_cores: float
    seconds: float


@dataclass(frozen=True)
class Stretch:
    """`looks` from the last one at or before the window's start to the first at or after its end."""

    looks: tuple[Look, ...]

    @property
    def change(self) -> Change:
        return difference(self.looks[0].conditions, self.looks[-1].conditions)

    def pressure(self, resource: str) -> float | None:
        """Share of the time, 0 to 1, in which some task waited for the resource; None where it is not known."""
        change = self.change
        stalled = (change.stalled_us or {}).get(resource, {}).get("some")
        return None if stalled is None or change.elapsed_s <= 0 else stalled / 1e6 / change.elapsed_s

    def slowed(self) -> dict[str, tuple[Cooling, int]] | None:
        """{device that slowed CPUs: (its strongest state, in how many looks)}; None where no look shows devices."""
        seen = [look.conditions.cooling for look in self.looks if look.conditions.cooling is not None]
        found: dict[str, tuple[Cooling, int]] = {}
        for devices in seen:
            for name, device in devices.items():
                if slows_cpus(device):
                    strongest, count = found.get(name, (device, 0))
                    found[name] = (max(strongest, device, key=lambda one: one.state), count + 1)
        return found if seen else None

    @property
    def with_cpu_times(self) -> list[Look]:
        """The looks that show the CPU time of the machine and of the measured processes."""
        return [look for look in self.looks if look.busy_s is not None and look.tree_cpu_s is not None]

    def others(self) -> Others | str:
        """Who else used the CPUs, or why that is not known."""
        known = self.with_cpu_times
        if len(known) < 2:
            return "fewer than two samples show the CPU time of the machine and of the measured processes"
        first, last = known[0], known[-1]
        seconds = last.t_s - first.t_s
        if seconds < MIN_OTHERS_S:
            return f"the samples span {seconds:.2f} s of it, {MIN_OTHERS_S:.0f} s is the least that tells"
        if seconds < self.change.elapsed_s / 2:
            return f"the samples span {seconds:.1f} s of {self.change.elapsed_s:.1f} s"
        busy_s, steal_s = _grown(first.busy_s, last.busy_s), _grown(first.steal_s, last.steal_s)
        tree_s = _grown(first.tree_cpu_s, last.tree_cpu_s)
        if busy_s is None or steal_s is None or tree_s is None:
            return "a CPU time went back, as when a measured process ended that nobody waited for"
        return Others(max(0.0, busy_s - tree_s) / seconds, steal_s / seconds, seconds)


def stretch_of(
    before: Conditions, after: Conditions, samples: Sequence[Mapping[str, Any]], window: Window | None = None
) -> Stretch:
    """The stretch that encloses `window` most narrowly; all from `before` to `after` where there is none."""
    looks = sorted([Look(before), *_looks(samples), Look(after)], key=lambda look: look.t_s)
    if window is None:
        return Stretch(tuple(looks))
    start_s, end_s = (t_ns / 1e9 for t_ns in window)
    first = max((at for at, look in enumerate(looks) if look.t_s <= start_s), default=0)
    last = min((at for at, look in enumerate(looks) if look.t_s >= end_s), default=len(looks) - 1)
    return Stretch(tuple(looks[first : max(first, last) + 1]))


def _looks(samples: Sequence[Mapping[str, Any]]) -> Iterator[Look]:
    """A reason is told in one sample only, and holds for those after it too."""
    told: dict[str, str] = {}
    for at, sample in enumerate(samples):
        if sample.get("event") != "sample":
            continue
        for path, reason in sample.get("reasons", {}).items():
            told[path.removeprefix("conditions.")] = reason
        plain = sample["conditions"]
        reasons = {name: reason for name, reason in told.items() if name in plain and plain[name] is None}
        cpu = sample["cpu"] or {}
        look = conditions_of({**plain, "reasons": reasons})
        yield Look(look, cpu.get("busy_s"), cpu.get("steal_s"), sample["tree_cpu_s"], at)


def _grown(earlier: float | None, later: float | None) -> float | None:
    return None if earlier is None or later is None or later < earlier else later - earlier
