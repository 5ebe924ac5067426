"""A process and everything below it, as /proc shows them from outside: memory and CPU time.

Under user-mode QEMU the memory of a process includes the emulator's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rvvbench.observe.kernel_files import read_text


@dataclass(frozen=True)
class Stat:
    """What /proc/PID/stat tells (proc_pid_stat(5)), times in clock ticks.

    `started` (since the machine started) tells one process from a later one of the same number. `reaped_ticks`: user
    and system time of children that have ended and were waited for, and of theirs.
    """

    command: str
    parent: int
    cpu_ticks: int
    reaped_ticks: int
    started: int


@dataclass(frozen=True)
class Memory:
    """VmRSS, VmHWM and VmSwap of /proc/PID/status, bytes. VmSwap is None on kernels without swap."""

    rss_bytes: int
    vm_hwm_bytes: int
    swap_bytes: int | None


@dataclass(frozen=True)
class Member:
    """A living process of the tree. `cpu_s` is its own user and system time."""

    pid: int
    command: str
    memory: Memory
    cpu_s: float


@dataclass(frozen=True)
class Look:
    """The tree at one moment. `cpu_s`: user and system time of all its processes since each began, of those that ended
    and were waited for too. No members: the tree has ended, and its time is not known.
    """

    members: tuple[Member, ...]
    cpu_s: float | None


class ProcessTree:
    """The processes below `root` and `root` itself. Who belongs to it once stays in it, also when its parent ends.

    A look lists /proc once, reads two files for each member, and `stat` of each process that was not there before.
    """

    def __init__(self, root: int, proc: Path = Path("/proc"), *, ticks_per_s: int | None = None) -> None:
        self._proc = proc
        self._root = root
        self._ticks_per_s = ticks_per_s or os.sysconf("SC_CLK_TCK")
        self._root_seen = False
        self._started: dict[int, int] = {}
        self._strangers: set[int] = set()

    def look(self) -> Look:
        """The tree now. Who has ended and only waits for its parent has no memory, and is no member."""
        present = {int(name) for name in os.listdir(self._proc) if name.isdecimal()}  # noqa: PTH208 (half the cost)
        stats = self._members(present)
        members = [
            Member(pid, stat.command, memory, stat.cpu_ticks / self._ticks_per_s)
            for pid, stat in sorted(stats.items())
            if (memory := self._memory(pid)) is not None
        ]
        ticks = sum(stat.cpu_ticks + stat.reaped_ticks for stat in stats.values())
        return Look(tuple(members), ticks / self._ticks_per_s if members else None)

    def _members(self, present: set[int]) -> dict[int, Stat]:
        stats = {pid: stat for pid in self._started.keys() & present if (stat := self._same(pid)) is not None}
        self._strangers &= present
        new = {pid: stat for pid in present - stats.keys() - self._strangers if (stat := self._stat(pid)) is not None}
        if self._root_seen:
            new.pop(self._root, None)  # the root has ended, and its number is another's
        self._root_seen |= self._root in new
        joined = {pid: new[pid] for pid in below(self._root, stats, {pid: stat.parent for pid, stat in new.items()})}
        self._strangers |= new.keys() - joined.keys()
        stats |= joined
        self._started = {pid: stat.started for pid, stat in stats.items()}
        return stats

    def _same(self, pid: int) -> Stat | None:
        stat = self._stat(pid)
        return stat if stat is not None and stat.started == self._started[pid] else None

    def _stat(self, pid: int) -> Stat | None:
        text = read_text(self._proc / str(pid) / "stat")
        return None if text is None else parse_stat(text)

    def _memory(self, pid: int) -> Memory | None:
        text = read_text(self._proc / str(pid) / "status")
        return None if text is None else parse_memory(text)


def below(root: int, known: Iterable[int], parents: dict[int, int]) -> set[int]:
    """Who of `parents` {pid: parent} is `root`, or has `root` or one of `known` above it."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    found = {root} & parents.keys()
    queue = [*found, *known]
    while queue:
        joined = [pid for pid in children.get(queue.pop(), ()) if pid not in found]
        found.update(joined)
        queue.extend(joined)
    return found


def parse_stat(text: str) -> Stat | None:
    """What the text of /proc/PID/stat tells; None where it is cut off.

    The command stands in parentheses and may hold anything; the other fields follow the last one.
    """
    head, closing, tail = text.rpartition(")")
    fields = tail.split()
    if not closing or len(fields) < 20:
        return None
    try:
        user, system, reaped_user, reaped_system = (int(field) for field in fields[11:15])
        return Stat(
            command=head.partition("(")[2],
            parent=int(fields[1]),
            cpu_ticks=user + system,
            reaped_ticks=reaped_user + reaped_system,
            started=int(fields[19]),
        )
    except ValueError:
        return None


def parse_memory(text: str) -> Memory | None:
    """What the text of /proc/PID/status tells; None for a process without memory (ended, or of the kernel)."""
    found = _kib_lines(text, ("VmRSS", "VmHWM", "VmSwap"))
    if "VmRSS" not in found or "VmHWM" not in found:
        return None
    return Memory(found["VmRSS"], found["VmHWM"], found.get("VmSwap"))


def parse_pss_bytes(text: str) -> int | None:
    """Proportional set size in the text of /proc/PID/smaps_rollup, bytes; None where it tells none."""
    return _kib_lines(text, ("Pss",)).get("Pss")


def read_pss_bytes(pid: int, proc: Path = Path("/proc")) -> tuple[int | None, str | None]:
    """PSS, or None and why. The kernel walks every page of the process for it: some 30 ms per GiB on a fast core."""
    try:
        text = (proc / str(pid) / "smaps_rollup").read_text(encoding="ascii", errors="replace")
    except OSError as refused:
        return None, f"smaps_rollup: {refused.strerror}"
    value = parse_pss_bytes(text)
    return (value, None) if value is not None else (None, "smaps_rollup tells no Pss")


def _kib_lines(text: str, names: tuple[str, ...]) -> dict[str, int]:
    """The lines "Name:  123 kB" (kB there means KiB) of these names, bytes."""
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in names and rest.split()[:1] and rest.split()[0].isdecimal():
            found[name] = int(rest.split()[0]) * 1024
    return found
