"""One look at the machine: its conditions, the time that its CPUs have worked, and its frequency governors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rvvbench.observe.conditions import Conditions, Cooling, snapshot
from rvvbench.observe.kernel_files import Roots, read_table, read_text


@dataclass(frozen=True)
class CpuTime:
    """Of all CPUs since the machine started, seconds: `busy_s` worked for somebody (user, nice, system, interrupts),
    `steal_s` wanted to work while a hypervisor ran others.
    """

    busy_s: float
    steal_s: float


@dataclass(frozen=True)
class Moment:
    """`cpu` is None where /proc/stat does not tell, `governors` {policy: name} where there is no cpufreq."""

    conditions: Conditions
    cpu: CpuTime | None
    governors: dict[str, str] | None

    def plain(self) -> dict[str, Any]:
        """The same as JSON data."""
        cpu = None if self.cpu is None else {"busy_s": self.cpu.busy_s, "steal_s": self.cpu.steal_s}
        return {"conditions": self.conditions.plain(), "cpu": cpu, "governors": self.governors}


def moment(roots: Roots | None = None, *, ticks_per_s: int | None = None) -> Moment:
    """The machine now. `ticks_per_s`: of the kernel's CPU times, asked of the system where None."""
    roots = roots or Roots()
    stat = read_table(roots.proc / "stat").get("cpu")
    governors = {
        policy.name: governor
        for policy in roots.cpufreq_policies()
        if (governor := read_text(policy / "scaling_governor"))
    }
    return Moment(
        conditions=snapshot(roots),
        cpu=None if stat is None else parse_cpu_time(stat, ticks_per_s or os.sysconf("SC_CLK_TCK")),
        governors=governors or None,
    )


def parse_cpu_time(text: str, ticks_per_s: int) -> CpuTime | None:
    """The time in the line "cpu" of /proc/stat, its name left out (proc_stat(5)): user, nice, system, idle, iowait,
    irq, softirq, steal, guest, guest_nice. Guests' time is in user and nice already. None where the line is damaged.
    """
    try:
        user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in text.split()[:8])
    except ValueError:
        return None
    return CpuTime((user + nice + system + irq + softirq) / ticks_per_s, steal / ticks_per_s)


def slows_cpus(device: Cooling) -> bool:
    """Whether it cools now, by slower CPUs: "cpufreq-cpu0", "thermal-cpufreq-0", ACPI's "Processor"; not by a fan."""
    return ("cpufreq" in device.kind or device.kind == "Processor") and device.state > 0


def conditions_of(plain: Mapping[str, Any]) -> Conditions:
    """The Conditions that `Conditions.plain()` wrote, also after a way through JSON.

    Raises KeyError, TypeError or ValueError for what is none.
    """
    data = dict(plain)
    if data["load_average"] is not None:
        one, five, fifteen = data["load_average"]
        data["load_average"] = (one, five, fifteen)
    if data["time_in_state_ms"] is not None:
        data["time_in_state_ms"] = {
            policy: {int(khz): ms for khz, ms in states.items()} for policy, states in data["time_in_state_ms"].items()
        }
    if data["cooling"] is not None:
        data["cooling"] = {name: Cooling(**device) for name, device in data["cooling"].items()}
    return Conditions(**data)
