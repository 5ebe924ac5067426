"""What a serving run knows of itself while it is under way."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .child import Child
from .events import Events
from .failure import NotWritten
from .log_tail import log_tail
from .serving_spec import ServingSpec

# The server is looked at this often even where memory is sampled less.
LOOK_S = 0.5


@dataclass
class Run:
    """`phase` is what every error names: "pins", "startup", "compile", a load's name, "cross_check" or "shutdown".
    `workers` {pid: role} are the processes that the server cannot do without. `failed`: a measured request was.
    """

    spec: ServingSpec
    events: Events
    log: Path
    phase: str = "pins"
    port: int = 0
    emulated: bool = False
    workers: dict[int, str] = field(default_factory=dict)
    failed: bool = False

    @property
    def look_s(self) -> float:
        """Seconds between two looks at the server."""
        return min(self.spec.sample_interval_s, LOOK_S)

    @property
    def death_shows_s(self) -> float:
        """A connection breaks before the process that held it can be seen to have ended; by then it can."""
        return 2 * self.look_s + 0.1

    def start_fields(self, server: Child) -> dict[str, Any]:
        """The fields of the `process_start` event."""
        return {"unix_s": time.time(), "server_pid": server.pid, "port": self.port, "argv": server.argv}

    def came(self, event: str, server: Child) -> None:
        """Write that the server has come to `event`, by one look at the clock."""
        now_ns = time.monotonic_ns()
        self.events.write(event, t_ns=now_ns, seconds=server.age_s(now_ns))

    def error(self, kind: str, message: str, trace: str | None = None) -> None:
        """Write an `error` event, with the end of the server's log; where it cannot be written, say it on stderr."""
        tail = log_tail(self.log)
        try:
            self.events.write("error", type=kind, message=message, traceback=trace, phase=self.phase, log_tail=tail)
        except NotWritten:
            print(f"{kind} in phase {self.phase}: {message}", file=sys.stderr)
            raise
