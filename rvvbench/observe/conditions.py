"""The conditions under which a machine runs: what changes from moment to moment and moves a figure.

A snapshot is read before and after a run; what happened between them is a pure difference of the two.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rvvbench.observe.kernel_files import Roots, read_int, read_table, read_text
from rvvbench.observe.machine import kib_to_bytes

TIME_IN_STATE_UNIT_MS = 10  # Documentation/cpu-freq/cpufreq-stats: "in 10mS units"


@dataclass(frozen=True)
class Cooling:
    """A cooling device: `state` 0 is at rest, `max_state` cools most. What slows CPUs has "cpufreq" in its `kind`."""

    kind: str
    state: int
    max_state: int | None


@dataclass(frozen=True)
class Conditions:
    """One moment. None where the kernel does not tell, with the reason in `reasons` under the field's name.

    `load_average`: over 1, 5 and 15 minutes. `time_in_state_ms` {policy: {kHz: ms}}, `pressure_us` {resource: {"some" |
    "full": us}} and the pages that went in from and out to swap count since the machine started.
    """

    unix_s: float
    monotonic_s: float
    load_average: tuple[float, float, float] | None
    frequency_khz: dict[str, int] | None
    time_in_state_ms: dict[str, dict[int, int]] | None
    temperature_millicelsius: dict[str, int] | None
    cooling: dict[str, Cooling] | None
    pressure_us: dict[str, dict[str, int]] | None
    swap_in_pages: int | None
    swap_out_pages: int | None
    memory_available_bytes: int | None
    reasons: dict[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The same as JSON data (JSON has text keys only: kHz become text)."""
        data = asdict(self)
        if self.load_average is not None:
            data["load_average"] = list(self.load_average)
        if self.time_in_state_ms is not None:
            data["time_in_state_ms"] = {
                policy: {str(khz): ms for khz, ms in states.items()} for policy, states in self.time_in_state_ms.items()
            }
        return data


@dataclass(frozen=True)
class Change:
    """What happened between two snapshots. None, with a reason, where one lacks the figure or a counter went back.

    `at_top_frequency`: {policy: share of the CPU's time, 0 to 1, at the highest frequency of that policy}.
    `warmer_millicelsius`: {zone: after - before}. `cooled`: devices that were cooling at either end.
    """

    elapsed_s: float
    time_in_state_ms: dict[str, dict[int, int]] | None
    at_top_frequency: dict[str, float] | None
    warmer_millicelsius: dict[str, int] | None
    cooled: tuple[str, ...] | None
    stalled_us: dict[str, dict[str, int]] | None
    swap_in_pages: int | None
    swap_out_pages: int | None
    reasons: dict[str, str]


def snapshot(roots: Roots | None = None) -> Conditions:
    """The conditions now. Reads some dozens of small files: milliseconds."""
    roots = roots or Roots()
    vmstat = read_table(roots.proc / "vmstat")
    found = Conditions(
        unix_s=time.time(),
        monotonic_s=time.monotonic(),
        load_average=_load_average(read_text(roots.proc / "loadavg")),
        frequency_khz={
            policy.name: khz
            for policy in roots.cpufreq_policies()
            if (khz := read_int(policy / "scaling_cur_freq")) is not None
        }
        or None,
        time_in_state_ms={
            policy.name: parse_time_in_state(text)
            for policy in roots.cpufreq_policies()
            if (text := read_text(policy / "stats/time_in_state"))
        }
        or None,
        temperature_millicelsius={
            zone.name: temperature
            for zone in roots.thermal_zones()
            if (temperature := read_int(zone / "temp")) is not None
        }
        or None,
        cooling={
            device.name: Cooling(read_text(device / "type") or "", state, read_int(device / "max_state"))
            for device in roots.cooling_devices()
            if (state := read_int(device / "cur_state")) is not None
        }
        or None,
        pressure_us={
            resource: parse_pressure(text)
            for resource in ("cpu", "io", "memory")
            if (text := read_text(roots.proc / "pressure" / resource))
        }
        or None,
        swap_in_pages=int(vmstat["pswpin"]) if "pswpin" in vmstat else None,
        swap_out_pages=int(vmstat["pswpout"]) if "pswpout" in vmstat else None,
        memory_available_bytes=kib_to_bytes(read_table(roots.proc / "meminfo", ":").get("MemAvailable")),
    )
    return replace(found, reasons={name: REASONS[name] for name in REASONS if getattr(found, name) is None})


REASONS = {
    "load_average": "/proc/loadavg cannot be read",
    "frequency_khz": "the kernel offers no CPU frequency policy (cpufreq)",
    "time_in_state_ms": "the kernel offers no cpufreq statistics (CONFIG_CPU_FREQ_STAT)",
    "temperature_millicelsius": "the kernel offers no thermal zone",
    "cooling": "the kernel offers no cooling device",
    "pressure_us": "the kernel offers no pressure information (CONFIG_PSI, psi=1)",
    "swap_in_pages": "/proc/vmstat has no pswpin",
    "swap_out_pages": "/proc/vmstat has no pswpout",
    "memory_available_bytes": "/proc/meminfo has no MemAvailable",
}


WENT_BACK = "a counter went back or disappeared: machine or driver restarted between the snapshots"


def difference(before: Conditions, after: Conditions) -> Change:
    """What happened from `before` to `after`. Pure."""
    reasons: dict[str, str] = {}

    def both(name: str) -> bool:
        for moment, which in ((before, "before"), (after, "after")):
            if getattr(moment, name) is None:
                reasons[name] = f"{which} the run: {moment.reasons.get(name, 'not read')}"
                return False
        return True

    def counted(name: str, old: dict[str, dict[Any, int]], new: dict[str, dict[Any, int]]) -> Any:
        change = _counted(old, new)
        if change is None:
            reasons[name] = WENT_BACK
        return change

    def pages(name: str) -> int | None:
        if not both(name):
            return None
        change = int(getattr(after, name) - getattr(before, name))
        if change < 0:
            reasons[name] = WENT_BACK
        return change if change >= 0 else None

    states = warmer = cooled = stalled = None
    if both("time_in_state_ms"):
        states = counted("time_in_state_ms", before.time_in_state_ms or {}, after.time_in_state_ms or {})
    if both("temperature_millicelsius"):
        old, new = before.temperature_millicelsius or {}, after.temperature_millicelsius or {}
        warmer = {zone: new[zone] - old[zone] for zone in old if zone in new}
    if both("cooling"):
        devices = (before.cooling or {}).items(), (after.cooling or {}).items()
        cooled = tuple(sorted({name for ends in devices for name, device in ends if device.state > 0}))
    if both("pressure_us"):
        stalled = counted("pressure_us", before.pressure_us or {}, after.pressure_us or {})
    return Change(
        elapsed_s=after.monotonic_s - before.monotonic_s,
        time_in_state_ms=states,
        at_top_frequency=None if states is None else top_shares(states),
        warmer_millicelsius=warmer,
        cooled=cooled,
        stalled_us=stalled,
        swap_in_pages=pages("swap_in_pages"),
        swap_out_pages=pages("swap_out_pages"),
        reasons=reasons,
    )


def top_shares(time_in_state_ms: dict[str, dict[int, int]]) -> dict[str, float]:
    """{policy: share of the time at its highest frequency}; a policy that counted no time is left out."""
    return {
        policy: states[max(states)] / total
        for policy, states in time_in_state_ms.items()
        if (total := sum(states.values())) > 0
    }


def parse_time_in_state(text: str) -> dict[int, int]:
    """{kHz: ms} of the lines "kHz units" of cpufreq's time_in_state."""
    states = (line.split() for line in text.splitlines())
    return {int(khz): int(units) * TIME_IN_STATE_UNIT_MS for khz, units in states}


def parse_pressure(text: str) -> dict[str, int]:
    """{"some" | "full": microseconds stalled since boot} of a file of /proc/pressure."""
    lines = (line.split() for line in text.splitlines())
    return {kind: int(rest[-1].removeprefix("total=")) for kind, *rest in lines}


def _load_average(text: str | None) -> tuple[float, float, float] | None:
    if text is None:
        return None
    one, five, fifteen, *_ = text.split()
    return float(one), float(five), float(fifteen)


def _counted(old: dict[Any, dict[Any, int]], new: dict[Any, dict[Any, int]]) -> dict[Any, dict[Any, int]] | None:
    change: dict[Any, dict[Any, int]] = {}
    for group, counters in old.items():
        change[group] = {}
        for name, count in counters.items():
            now = new.get(group, {}).get(name)
            if now is None or now < count:
                return None
            change[group][name] = now - count
    return change
