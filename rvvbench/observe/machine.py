"""What a machine is: the facts of it that do not change during a run."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable
from typing import Any

from rvvbench.engine.facts import cgroup_layout_of
from rvvbench.observe.kernel_files import Roots, read_int, read_table, read_text

AT_HWCAP = 16
HWCAP_V = 1 << (ord("v") - ord("a"))


def machine_facts(
    roots: Roots | None = None, *, machine: str | None = None, hwcap: Callable[[], int] | None = None
) -> dict[str, Any]:
    """The facts of this machine, as they go into a record.

    Every key is always there. A value that cannot be known is None, and `reasons` says why, under the same key:

    `kernel` (release), `arch` (uname -m), `distribution`, `board` (device tree), `cpu_model`, `cores` (online), `isa`
    (the string of /proc/cpuinfo, riscv64 only), `vector` (whether the kernel lets programs use V: AT_HWCAP, riscv64
    only), `memory_bytes`, `swap_bytes`, `governors` {policy: name}, `max_frequency_khz` {policy: kHz},
    `passive_trip_millicelsius` {zone: the temperature at which the kernel begins to slow down}, `cgroup_layout`.
    """
    roots = roots or Roots()
    machine = machine or platform.machine()
    hwcap = hwcap or _hwcap
    cpuinfo = read_table(roots.proc / "cpuinfo", ":")
    meminfo = read_table(roots.proc / "meminfo", ":")
    online = read_text(roots.sys / "devices/system/cpu/online")
    model = next((cpuinfo[name] for name in ("model name", "Model", "Hardware") if name in cpuinfo), None)
    isa, isa_reason = _isa(machine, cpuinfo)
    mounts = read_text(roots.proc / "self/mounts")
    no_policy = "the kernel offers no CPU frequency policy (cpufreq)"
    governors = {p.name: g for p in roots.cpufreq_policies() if (g := read_text(p / "scaling_governor"))}
    fastest = {p.name: f for p in roots.cpufreq_policies() if (f := read_int(p / "cpuinfo_max_freq")) is not None}
    found: dict[str, tuple[Any, str]] = {
        "kernel": (read_text(roots.proc / "sys/kernel/osrelease"), "/proc/sys/kernel/osrelease cannot be read"),
        "arch": (machine, ""),
        "distribution": (_distribution(roots), "/etc/os-release names none"),
        "board": (read_text(roots.proc / "device-tree/model"), "this machine has no device tree"),
        "cpu_model": (model, "/proc/cpuinfo names no model"),
        "cores": (cpu_count(online) if online else None, "/sys/devices/system/cpu/online cannot be read"),
        "isa": (isa, isa_reason),
        "vector": (
            bool(hwcap() & HWCAP_V) if machine == "riscv64" else None,
            f"no RISC-V processor: {machine}",
        ),
        "memory_bytes": (kib_to_bytes(meminfo.get("MemTotal")), "/proc/meminfo has no MemTotal"),
        "swap_bytes": (kib_to_bytes(meminfo.get("SwapTotal")), "/proc/meminfo has no SwapTotal"),
        "governors": (governors or None, no_policy),
        "max_frequency_khz": (fastest or None, no_policy),
        "passive_trip_millicelsius": (_passive_trips(roots) or None, "the kernel offers no passive trip point"),
        "cgroup_layout": (cgroup_layout_of(mounts) if mounts else None, "/proc/self/mounts cannot be read"),
    }
    values = {name: value for name, (value, _) in found.items()}
    return values | {"reasons": {name: reason for name, (value, reason) in found.items() if value is None}}


def cpu_count(cpus: str) -> int:
    """How many CPUs a list in the kernel's notation holds: "0-3,6" is 5."""
    count = 0
    for part in cpus.split(","):
        first, _, last = part.partition("-")
        count += int(last or first) - int(first) + 1
    return count


def kib_to_bytes(text: str | None) -> int | None:
    """Bytes of a value of /proc/meminfo, such as "16384 kB" (kB there means KiB)."""
    return None if text is None else int(text.split()[0]) * 1024


def _isa(machine: str, cpuinfo: dict[str, str]) -> tuple[str | None, str]:
    if machine != "riscv64":
        return None, f"no RISC-V processor: {machine}"
    if cpuinfo.get("uarch") == "qemu":
        return None, "QEMU wrote /proc/cpuinfo; it lists what QEMU could do, not what this process may use"
    return cpuinfo.get("isa"), "/proc/cpuinfo has no isa line"


def _distribution(roots: Roots) -> str | None:
    name = read_table(roots.etc / "os-release", "=").get("PRETTY_NAME")
    return None if name is None else name.strip("\"'")


def _passive_trips(roots: Roots) -> dict[str, int]:
    lowest: dict[str, int] = {}
    for zone in roots.thermal_zones():
        temperatures = [
            temperature
            for kind in zone.glob("trip_point_*_type")
            if read_text(kind) == "passive"
            and (temperature := read_int(kind.with_name(kind.name.replace("_type", "_temp")))) is not None
        ]
        if temperatures:
            lowest[zone.name] = min(temperatures)
    return lowest


def _hwcap() -> int:
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.restype = ctypes.c_ulong
    return int(getauxval(ctypes.c_ulong(AT_HWCAP)))
