"""Files of /proc/PID as the kernel writes them, for processes that do not exist."""

from __future__ import annotations

import shutil
from typing import Any


def stat_line(
    pid: int,
    parent: int,
    *,
    command: str = "python3",
    state: str = "S",
    cpu: int = 0,
    reaped: int = 0,
    started: int = 1,
) -> str:
    """`cpu` and `reaped` in ticks, all of it user time."""
    tail = f"{parent} 1 1 0 -1 4194304 5 0 0 0 {cpu} 0 {reaped} 0 20 0 1 0 {started} 3133440 363 18446744073709551615"
    return f"{pid} ({command}) {state} {tail}\n"


def put(tree: Any, pid: int, parent: int, *, rss_kib: int | None = 100, pss_kib: int | None = 60, **stat: Any) -> None:
    """Write, or overwrite, a process. `rss_kib` None: a zombie has no memory."""
    tree.write(f"proc/{pid}/stat", stat_line(pid, parent, **stat))
    memory = "" if rss_kib is None else f"VmHWM:\t{rss_kib + 10} kB\nVmRSS:\t{rss_kib} kB\nVmSwap:\t0 kB\n"
    tree.write(f"proc/{pid}/status", f"Name:\tpython3\nState:\tS (sleeping)\n{memory}Threads:\t1\n")
    if pss_kib is not None:
        rollup = (
            f"55af0fa08000-7ffe04cf1000 ---p 00000000 00:00 0 [rollup]\nRss: 9 kB\nPss: {pss_kib} kB\nPss_Anon: 1 kB\n"
        )
        tree.write(f"proc/{pid}/smaps_rollup", rollup)


def end(tree: Any, pid: int) -> None:
    shutil.rmtree(tree.root / "proc" / str(pid))
