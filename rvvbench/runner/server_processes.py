"""Which process of a server is which, and which of them it cannot do without."""

from __future__ import annotations

from pathlib import Path

from . import memory

# What SGLang 0.5.15 names its processes (setproctitle); the kernel keeps 15 characters of it as the command's name.
TITLES = {"sglang::scheduler": "scheduler", "sglang::detokenizer": "detokenizer"}
WORKERS = frozenset(TITLES.values())
_COMMAND_CHARACTERS = 15


def roles(server: int, scheduler: int, proc: Path = memory.PROC) -> dict[int, str]:
    """{pid: role} of the server and everything below it. `scheduler` is the pid that the scheduler told itself."""
    tree = memory.descendants(server, memory.parents(proc))
    known = {server: "server", scheduler: "scheduler"}
    return {pid: known.get(pid) or _titled(pid, proc) or "other" for pid in tree}


def _titled(pid: int, proc: Path) -> str | None:
    try:
        line = (proc / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace")
        # Under emulation the command line is the emulator's; the name that a process gives itself is passed on.
        name = (proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    for title, role in TITLES.items():
        if line.startswith(title) or name == title[:_COMMAND_CHARACTERS]:
            return role
    return None
