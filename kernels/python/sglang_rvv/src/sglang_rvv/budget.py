"""How much memory packed weights may take, and which modules fit into it. Pure but for `available_bytes`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20

SHARE = 0.75
"""Of the memory that is there when packing begins, the default budget: a quarter stays for KV pool and activations."""


@dataclass
class Budget:
    """`limit_bytes` for all packed weights of a model. Modules are asked for in a fixed order; one that does not fit
    into what is left stays as it is, and the next one is asked for (first fit).
    """

    limit_bytes: int
    taken_bytes: int = 0
    packed: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    def take(self, name: str, cost_bytes: int) -> bool:
        """Whether the module of that full name may be packed; remembers either way."""
        fits = cost_bytes <= self.limit_bytes - self.taken_bytes
        (self.packed if fits else self.left_out)[name] = cost_bytes
        if fits:
            self.taken_bytes += cost_bytes
        return fits


def limit_of(asked_mib: float | None, available: int) -> int:
    """The budget in bytes: what was asked for, else `SHARE` of what is available."""
    return int(SHARE * available) if asked_mib is None else int(asked_mib * MIB)


def available_bytes(root: Path = Path("/")) -> int:
    """The smaller of MemAvailable and what the cgroups of this process leave."""
    return min([memory_available(root), *cgroup_room(root)])


def memory_available(root: Path) -> int:
    """MemAvailable of /proc/meminfo, in bytes."""
    for line in (root / "proc/meminfo").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 1024
    raise OSError("no MemAvailable in /proc/meminfo")


def cgroup_room(root: Path) -> Iterable[int]:
    """Limit less usage, in bytes, of every memory cgroup above this process that has a limit (version 1 or 2)."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield from _room(root / "sys/fs/cgroup", path, "memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            yield from _room(root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes", "memory.usage_in_bytes")


def _room(mount: Path, path: str, limit: str, usage: str) -> Iterable[int]:
    # In a namespace of its own a container sees its cgroup at the mount itself, whatever the path says.
    own = mount / path.strip("/")
    for folder in dict.fromkeys([own, *own.parents]):
        if not folder.is_relative_to(mount):
            break
        try:
            most, used = (folder / limit).read_text().strip(), int((folder / usage).read_text())
        except (OSError, ValueError):
            continue
        if most.isdigit():
            yield max(0, int(most) - used)
