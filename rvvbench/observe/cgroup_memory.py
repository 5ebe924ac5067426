"""Memory of a control group: the kernel's own peak, and what the memory consists of, anonymous and file.

The kernel keeps one peak of everything (anonymous, page cache, its own structures) and splits only what is there now.
That a checkpoint was read through the page cache raises the peak without any process having needed the memory: the
parts must be told apart (memory.peak and memory.stat of cgroup v2; memory.max_usage_in_bytes of v1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rvvbench.engine.container import memory_limit_path
from rvvbench.observe.kernel_files import Roots, read_int, read_table, read_text


@dataclass(frozen=True)
class CgroupMemory:
    """Bytes; None where the kernel does not tell. `peak_bytes` since the group was made, the others now.

    `file_bytes` is page cache, shared memory and tmpfs (`shared_bytes`) included. With kernel memory, which is in
    neither, `anonymous_bytes` + `file_bytes` make up `current_bytes`.
    """

    peak_bytes: int | None
    current_bytes: int | None
    anonymous_bytes: int | None
    file_bytes: int | None
    shared_bytes: int | None

    def plain(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class _Names:
    peak: str
    current: str
    anonymous: str
    file: str
    shared: str


_V1 = _Names("memory.max_usage_in_bytes", "memory.usage_in_bytes", "total_rss", "total_cache", "total_shmem")
_V2 = _Names("memory.peak", "memory.current", "anon", "file", "shmem")


def memory_group(pid: int, roots: Roots) -> tuple[Path | None, str]:
    """The folder of the group of `pid` under the memory controller, or None and why there is none of its own."""
    mounts = read_text(roots.proc / "self/mounts")
    of_pid = read_text(roots.proc / str(pid) / "cgroup")
    if mounts is None or of_pid is None:
        return None, "the process's cgroup cannot be read"
    limit = memory_limit_path(of_pid, mounts)
    if limit is None:
        return None, "there is no memory controller (rootless without delegation, or none mounted)"
    if memory_limit_path(read_text(roots.proc / "self/cgroup") or "", mounts) == limit:
        return None, "the process has no cgroup of its own: it is in the harness's"
    return limit.parent, ""


def read_cgroup_memory(folder: Path) -> tuple[CgroupMemory, dict[str, str]]:
    """The memory of the group at `folder`, and why what is None is so (under the fields' names)."""
    names = _V2 if (folder / "memory.current").exists() else _V1
    stat = read_table(folder / "memory.stat")
    found = CgroupMemory(
        peak_bytes=read_int(folder / names.peak),
        current_bytes=read_int(folder / names.current),
        anonymous_bytes=_bytes(stat, names.anonymous),
        file_bytes=_bytes(stat, names.file),
        shared_bytes=_bytes(stat, names.shared),
    )
    reasons = {
        "peak_bytes": f"no {names.peak} (cgroup v2 has it from Linux 5.19)",
        "current_bytes": f"no {names.current}",
        "anonymous_bytes": f"memory.stat has no {names.anonymous}",
        "file_bytes": f"memory.stat has no {names.file}",
        "shared_bytes": f"memory.stat has no {names.shared}",
    }
    return found, {name: reason for name, reason in reasons.items() if getattr(found, name) is None}


def _bytes(stat: Mapping[str, str], name: str) -> int | None:
    text = stat.get(name, "")
    return int(text) if text.isdecimal() else None
