"""Why a server ended by itself, from its exit code and the end of its log."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from .failure import ServingFailed

# SGLang 0.5.15 ends itself by SIGKILL, after a failure as well as after SIGTERM, and logs it (`kill_process_tree`); its
# watchdog logs how a worker ended.
_KILLS_ITSELF = "kill_process_tree called"
_WORKER_KILLED = f"exit code {-signal.SIGKILL}"
_PORT_TAKEN = "address already in use"
_BIND = "bind on address"
_EXCEPTION = re.compile(r"[\w.]*(Error|Exception): .+")


def died(code: int | None, missing: Sequence[str], tail: Sequence[str], port: int) -> ServingFailed:
    """What to say. `code` is minus the signal that killed the server, None where it still runs; `missing` are the
    workers that ended, in words; `port` is the one that it was given.
    """
    text = "\n".join(tail)
    if any(_port_taken(line.lower(), port) for line in tail):
        return ServingFailed("port-in-use", f"the server found its port {port} in use")
    said = [f"{' and '.join(missing)} ended"] if missing else []
    itself = code == -signal.SIGKILL and _KILLS_ITSELF in text
    if itself:
        said.append("the server killed itself after a failure")
    elif code is not None:
        said.append(f"the server ended with exit code {code}" if code >= 0 else f"the server was {killed_by(-code)}")
    if _WORKER_KILLED in text and (itself or code != -signal.SIGKILL):
        said.append(f"its log tells of a process {killed_by(signal.SIGKILL)}")
    exceptions = [line.strip() for line in tail if _EXCEPTION.fullmatch(line.strip())]
    if exceptions:
        said.append(f"the last exception in its log is {exceptions[-1]}")
    return ServingFailed("server-died", "; ".join(said))


def killed_by(number: int) -> str:
    """How a process ended that a signal killed. Who sent a SIGKILL is not known here."""
    guess = " from outside: by the kernel for want of memory, or by somebody"
    return f"killed by signal {number}" + (guess if number == signal.SIGKILL else "")


def _port_taken(line: str, port: int) -> bool:
    """Whether a line of the log (in small letters) is of the server's own failed bind: asyncio's words, with the
    address. Others speak of ports of their own.
    """
    return _PORT_TAKEN in line and _BIND in line and re.search(rf"\b{port}\b", line) is not None
