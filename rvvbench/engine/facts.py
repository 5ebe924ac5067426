"""What this host is like, as far as podman cares. Reading is here; deciding what to do about it is in `quirks`."""

from __future__ import annotations

import os
import platform
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

CAP_SYS_RESOURCE = 24

CgroupLayout = Literal["v1", "hybrid", "v2", "none"]


@dataclass(frozen=True)
class HostFacts:
    """Facts about the host. Limits are counts; `None` means that the fact could not be read.

    `cgroup_layout`: "v2" (unified), "v1", "hybrid" (v1 controllers and a v2 tree beside them), "none".
    `hard_nofile`, `hard_nproc`: the hard limits of this process, -1 for unlimited.
    `may_raise_limits`: whether this process may raise its own hard limits (CAP_SYS_RESOURCE).
    """

    machine: str
    is_root: bool
    podman: str | None
    runtimes: frozenset[str]
    cgroup_layout: CgroupLayout
    systemd: bool
    hard_nofile: int
    hard_nproc: int
    may_raise_limits: bool
    nr_open: int | None
    pid_max: int | None
    journald: bool = False


def cgroup_layout_of(mounts: str) -> CgroupLayout:
    """The cgroup layout that `mounts` (the text of /proc/self/mounts) describes."""
    kinds = {fields[2] for line in mounts.splitlines() if len(fields := line.split()) > 2}
    if "cgroup" in kinds:
        return "hybrid" if "cgroup2" in kinds else "v1"
    return "v2" if "cgroup2" in kinds else "none"


def has_capability(status: str, capability: int) -> bool:
    """Whether the effective set in `status` (the text of /proc/self/status) holds capability number `capability`."""
    for line in status.splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return False


def read_facts() -> HostFacts:
    """The facts of this host, now."""
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
    return HostFacts(
        machine=platform.machine(),
        is_root=os.geteuid() == 0,
        podman=shutil.which("podman", path=search),
        runtimes=frozenset(name for name in ("crun", "runc") if shutil.which(name, path=search)),
        cgroup_layout=cgroup_layout_of(Path("/proc/self/mounts").read_text()),
        systemd=Path("/run/systemd/system").is_dir(),
        hard_nofile=resource.getrlimit(resource.RLIMIT_NOFILE)[1],
        hard_nproc=resource.getrlimit(resource.RLIMIT_NPROC)[1],
        may_raise_limits=has_capability(Path("/proc/self/status").read_text(), CAP_SYS_RESOURCE),
        nr_open=_read_count("/proc/sys/fs/nr_open"),
        pid_max=_read_count("/proc/sys/kernel/pid_max"),
        journald=Path("/run/systemd/journal/socket").exists(),
    )


def _read_count(path: str) -> int | None:
    file = Path(path)
    return int(file.read_text()) if file.exists() else None
