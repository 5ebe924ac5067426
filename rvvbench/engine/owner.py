"""Who owns a container or a service: a process, named so that a recycled pid or a reboot cannot be mistaken for it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LABEL = "org.rvvbench.owner"
RUN_LABEL = "org.rvvbench.run"


@dataclass(frozen=True)
class Owner:
    """A process. `start_ticks` is its start time in clock ticks since boot (field 22 of /proc/PID/stat, proc(5)).

    `pid_namespace` is the identity of the pid namespace that `pid` belongs to.
    """

    pid: int
    start_ticks: int
    boot_id: str
    pid_namespace: str

    def encode(self) -> str:
        return f"{self.pid}/{self.start_ticks}/{self.boot_id}/{self.pid_namespace}"


def decode(text: str) -> Owner | None:
    """The owner that `text` names, or None where it is not one of ours."""
    parts = text.split("/")
    if len(parts) != 4 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    return Owner(int(parts[0]), int(parts[1]), parts[2], parts[3])


def start_ticks_of(stat: str) -> int:
    """Start time in `stat`, the text of /proc/PID/stat. The command may hold any character: count from the last ')'."""
    return int(stat[stat.rindex(")") + 1 :].split()[19])


def owner_of(pid: int) -> Owner | None:
    """The identity of a living process, None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return Owner(pid, start_ticks_of(stat), _boot_id(), _pid_namespace())


def this_process() -> Owner:
    owner = owner_of(os.getpid())
    assert owner is not None, "this process has no entry in /proc"
    return owner


def is_dead(owner: Owner, here: Owner, living: Owner | None) -> bool:
    """Whether `owner` certainly lives no more, seen from process `here`; `living` is what has its pid now.

    A process of another pid namespace (a harness inside a container) cannot be judged, so it counts as alive.
    """
    if owner.boot_id != here.boot_id:
        return True
    if owner.pid_namespace != here.pid_namespace:
        return False
    return living is None or living.start_ticks != owner.start_ticks


def labels(run_id: str | None = None) -> dict[str, str]:
    """Labels that every container of rvvbench carries: its owner, and the run it belongs to where there is one."""
    found = {LABEL: this_process().encode()}
    if run_id is not None:
        found[RUN_LABEL] = run_id
    return found


def is_orphan(container_labels: Mapping[str, str]) -> bool:
    """Whether these labels name a process that is dead."""
    owner = decode(container_labels.get(LABEL, ""))
    return owner is not None and is_dead(owner, this_process(), owner_of(owner.pid))


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").readlink()).replace("/", "_")
