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
_EXCEPTION = re.compile(r"[\w.]*(Error|Exception): .+")


def died(code: int | None, missing: Sequence[str], tail: Sequence[str]) -> ServingFailed:
    """What to say. `code` is minus the signal that killed the server, None where it still runs; `missing` are the
    workers that ended, in words.
    """
    text = "\n".join(tail)
    if _PORT_TAKEN in text.lower():
        return ServingFailed("port-in-use", "the server found its port in use")
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
    """How a process ended that a signal killed."""
    return f"killed by signal {number}" + (": usually too little memory" if number == signal.SIGKILL else "")
