"""Memory as the kernel tells it: /proc/<pid>/status, /proc/<pid>/smaps_rollup. Under emulation it includes the
emulator.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROC = Path("/proc")


@dataclass(frozen=True)
class Status:
    """VmRSS and VmHWM of one process, bytes."""

    rss_bytes: int
    vm_hwm_bytes: int


def parse_kib(text: str, field: str) -> int | None:
    """The value of a `Field:  123 kB` line in bytes, None where there is no such line."""
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name == field:
            return int(rest.split()[0]) * 1024
    return None


def status(pid: int | str, proc: Path = PROC) -> Status | None:
    """What /proc/<pid>/status says; None when the process is gone or a zombie (which has no memory)."""
    try:
        text = (proc / str(pid) / "status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    rss, hwm = parse_kib(text, "VmRSS"), parse_kib(text, "VmHWM")
    return None if rss is None or hwm is None else Status(rss, hwm)


def pss_bytes(pid: int | str, proc: Path = PROC) -> tuple[int | None, str | None]:
    """Proportional set size in bytes, or None and the reason."""
    path = proc / str(pid) / "smaps_rollup"
    try:
        value = parse_kib(path.read_text(encoding="ascii", errors="replace"), "Pss")
    except OSError as error:
        return None, f"{path}: {error.strerror}"
    return (value, None) if value is not None else (None, f"{path} has no Pss line")


def descendants(root: int, parents: Mapping[int, int]) -> list[int]:
    """`root` and everything below it, from {pid: parent pid}."""
    tree, queue = [], [root]
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    while queue:
        pid = queue.pop()
        tree.append(pid)
        queue.extend(children.get(pid, ()))
    return sorted(tree)


def parents(proc: Path = PROC) -> dict[int, int]:
    """{pid: parent pid} of every process that is visible here."""
    return {pid: int(fields[1]) for pid, fields in _stats(proc)}


def group(leader: int, proc: Path = PROC) -> list[int]:
    """The processes of a process group, those left out that have ended and only wait to be asked for their code."""
    return [pid for pid, fields in _stats(proc) if int(fields[2]) == leader and fields[0] not in ("Z", "X")]


def _stats(proc: Path) -> Iterator[tuple[int, list[str]]]:
    """(pid, [state, parent, group, ...]) of every process."""
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text(encoding="ascii", errors="replace")
        except OSError:
            continue  # gone between listing and reading
        # The command's name stands in parentheses and may hold anything; the state and the parent follow the last one.
        fields = stat.rpartition(")")[2].split()
        if len(fields) > 2:
            yield int(entry.name), fields


def statuses(pids: Iterable[int], proc: Path = PROC) -> dict[int, Status]:
    """{pid: status} of those of these processes that are there to be read."""
    return {pid: known for pid in pids if (known := status(pid, proc)) is not None}


def tree_fields(seen: Mapping[int, Status]) -> dict[str, int]:
    """The fields of a `memory_tree` event: the sum of VmRSS over these processes, and how many they are."""
    return {"rss_sum_bytes": sum(known.rss_bytes for known in seen.values()), "processes": len(seen)}


def emulated(other_pid: int, machine: str | None = None, proc: Path = PROC) -> bool:
    """Whether this process runs under user-mode QEMU.

    The kernel's own architecture tells where it is exposed (Linux 6.1 and later); else the executable of another
    process of the same container, since QEMU disguises only a process's own /proc/self/exe.
    """
    kernel = proc / "sys/kernel/arch"
    try:
        return kernel.read_text(encoding="ascii").strip() != (machine or os.uname().machine)
    except OSError:
        pass
    try:
        return "qemu" in str((proc / str(other_pid) / "exe").readlink())
    except OSError:
        return False


def own_event(phase: str, role: str, *, is_emulated: bool) -> dict[str, Any]:
    """The fields of this process's `memory` event."""
    return event("self", phase, role, is_emulated=is_emulated)


def event(pid: int | str, phase: str, role: str, *, is_emulated: bool, proc: Path = PROC) -> dict[str, Any]:
    """The fields of a process's `memory` event."""
    known = status(pid, proc)
    pss, reason = pss_bytes(pid, proc)
    if known is None:
        reason = f"{proc / str(pid) / 'status'} cannot be read"
    fields = {
        "phase": phase,
        "role": role,
        "vm_hwm_bytes": known.vm_hwm_bytes if known else None,
        "rss_bytes": known.rss_bytes if known else None,
        "pss_bytes": pss,
        "emulated": is_emulated,
    }
    return fields if reason is None else {**fields, "reason": reason}
