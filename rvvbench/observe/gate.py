"""Waits before a repetition until the machine is at rest and cool. It changes nothing on the machine.

Load is judged by how many CPUs worked between two looks. The load average would still hold our own previous
repetition: from 8 it takes about three minutes to fall below 0.5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rvvbench.observe.finding import Finding
from rvvbench.observe.moment import Moment, slows_cpus

NOT_READY = "not-ready"

BELOW_TRIP_MILLICELSIUS = 15_000
"""How far below its passive trip point a zone must be: room for one repetition to warm up without being slowed down.
A judgement, no measurement."""


@dataclass(frozen=True)
class Limits:
    """What the machine must keep to be ready; None or no entry: not looked at.

    `busy_cores`: CPUs' worth of work, by anybody, between two looks. `load_average`: over one minute; only where
    /proc/stat cannot be read. `temperature_millicelsius` {zone: highest}. `governors` {policy: name} as they were at
    the start of the run.
    """

    busy_cores: float | None = 0.25
    load_average: float | None = 0.5
    temperature_millicelsius: Mapping[str, int] = field(default_factory=dict)
    governors: Mapping[str, str] | None = None


def limits_of(machine: Mapping[str, Any]) -> Limits:
    """The limits for a machine of these facts (`machine_facts`), with its governors as they are in the facts."""
    trips: Mapping[str, int] = machine["passive_trip_millicelsius"] or {}
    return Limits(
        temperature_millicelsius={zone: trip - BELOW_TRIP_MILLICELSIUS for zone, trip in trips.items()},
        governors=machine["governors"],
    )


def ready(earlier: Moment, now: Moment, limits: Limits) -> list[Finding]:
    """Why the machine is not ready `now`; `earlier` is a look some time before. What is not known is no reason."""
    found = []
    busy_cores = _busy_cores(earlier, now)
    load = now.conditions.load_average
    if busy_cores is not None:
        if limits.busy_cores is not None and busy_cores > limits.busy_cores:
            found.append(Finding("load", f"{busy_cores:.2f} CPUs were at work, at most {limits.busy_cores:.2f} may be"))
    elif load is not None and limits.load_average is not None and load[0] > limits.load_average:
        found.append(Finding("load", f"load average {load[0]:.2f}, at most {limits.load_average:.2f} may be"))
    for zone, celsius in (now.conditions.temperature_millicelsius or {}).items():
        highest = limits.temperature_millicelsius.get(zone)
        if highest is not None and celsius > highest:
            text = f"{zone} at {celsius / 1000:.1f} °C, at most {highest / 1000:.1f} °C may be"
            found.append(Finding("temperature", text))
    for name, device in (now.conditions.cooling or {}).items():
        if slows_cpus(device):
            found.append(Finding("cooling", f"{name} ({device.kind}) slows CPUs: state {device.state}, 0 belongs"))
    return found + _governors(now, limits)


def not_observed(now: Moment, limits: Limits) -> list[str]:
    """What the gate was to look at and the machine does not tell."""
    notes = []
    if limits.busy_cores is not None and now.cpu is None:
        notes.append("not observed: load between two looks (no /proc/stat); the load average was taken")
    if not limits.temperature_millicelsius:
        notes.append("not observed: temperature (no passive trip point gives a limit)")
    for zone in limits.temperature_millicelsius:
        if zone not in (now.conditions.temperature_millicelsius or {}):
            notes.append(f"not observed: temperature of {zone}")
    if limits.governors is None or now.governors is None:
        notes.append("not observed: governors (no cpufreq)")
    return notes


@dataclass(frozen=True)
class Waited:
    """What the gate did. `waited_for`: the first finding of each id in turn; `unready`: those at the end, when the
    machine was not ready within the deadline. `notes`: what could not be looked at.
    """

    waited_s: float
    looks: int
    waited_for: tuple[Finding, ...]
    unready: tuple[Finding, ...]
    notes: tuple[str, ...]

    @property
    def reasons(self) -> tuple[Finding, ...]:
        """Why the repetition that follows is not valid: id "not-ready"."""
        return tuple(Finding(NOT_READY, f"{finding.text} (waited {self.waited_s:.0f} s)") for finding in self.unready)

    def plain(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {
            "waited_s": self.waited_s,
            "looks": self.looks,
            "waited_for": [asdict(finding) for finding in self.waited_for],
            "unready": [asdict(finding) for finding in self.unready],
            "notes": list(self.notes),
        }


def waited_of(plain: Mapping[str, Any]) -> Waited:
    """The Waited that `Waited.plain()` wrote. Raises KeyError, TypeError or ValueError for what is none."""
    return Waited(
        waited_s=plain["waited_s"],
        looks=plain["looks"],
        waited_for=tuple(Finding(**finding) for finding in plain["waited_for"]),
        unready=tuple(Finding(**finding) for finding in plain["unready"]),
        notes=tuple(plain["notes"]),
    )


def wait_until_ready(
    look: Callable[[], Moment],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    deadline_s: float,
    limits: Limits,
    *,
    poll_s: float = 1.0,
    tell: Callable[[float, Sequence[Finding]], None] | None = None,
) -> Waited:
    """Look every `poll_s` until the machine is ready or `deadline_s` is over; at least two looks, so at least `poll_s`.

    `clock` is monotonic, seconds. A changed governor does not change back by waiting: where nothing else is wrong the
    deadline is not waited for. `tell` is told, before each further wait, how many seconds it has waited and for what.
    """
    started = clock()
    earlier = look()
    waited_for: dict[str, Finding] = {}
    looks = 1
    while True:
        sleep(poll_s)
        now = look()
        looks += 1
        found = ready(earlier, now, limits)
        waited_s = clock() - started
        transient = [finding for finding in found if finding.id != "governor"]
        for finding in transient:
            waited_for.setdefault(finding.id, finding)
        if not transient or waited_s + poll_s > deadline_s:
            notes = tuple(not_observed(now, limits))
            return Waited(waited_s, looks, tuple(waited_for.values()), tuple(found), notes)
        if tell is not None:
            tell(waited_s, transient)
        earlier = now


def _governors(now: Moment, limits: Limits) -> list[Finding]:
    if limits.governors is None or now.governors is None:
        return []
    return [
        Finding("governor", f"{policy} is governed by {now.governors.get(policy)}, at the start by {governor}")
        for policy, governor in limits.governors.items()
        if now.governors.get(policy) != governor
    ]


def _busy_cores(earlier: Moment, now: Moment) -> float | None:
    elapsed_s = now.conditions.monotonic_s - earlier.conditions.monotonic_s
    if earlier.cpu is None or now.cpu is None or elapsed_s <= 0:
        return None
    return max(0.0, now.cpu.busy_s - earlier.cpu.busy_s) / elapsed_s
