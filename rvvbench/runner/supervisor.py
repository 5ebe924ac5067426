"""Starts the measured process fresh, watches its memory from outside, and writes what it cannot write when it is
killed.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import Any

from . import memory
from .events import SCHEMA, Events
from .spec import Common, Spec

ROLE = "one_batch"
# Blocked in the supervisor and taken with sigtimedwait: no handlers, no polling, and the process wakes only when it
# samples.
AWAITED = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
FORWARDED = {signal.SIGTERM, signal.SIGINT}


@dataclass
class Last:
    """The newest look at the measured process."""

    emulated: bool
    status: memory.Status | None = None


def supervise(spec: Spec, command: list[str]) -> int:
    """Run `command` to its end and return what the supervisor should exit with: the process's code, or 128 + its
    signal.
    """
    with Events(spec.events_path) as events:
        events.write("supervisor_start", **start_fields(spec))
        signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
        child = os.posix_spawn(command[0], command, os.environ, setsigmask=())
        # Asked while the process lives: on older kernels its executable is the evidence.
        last = Last(emulated=memory.emulated(child))
        status = watch(child, spec.sample_interval_s, events, last)
        write_last_sample(events, last)
        code = os.waitstatus_to_exitcode(status)
        events.write("process_end", exit_code=code if code >= 0 else None, signal=-code if code < 0 else None)
        return code if code >= 0 else 128 - code


def start_fields(spec: Common) -> dict[str, Any]:
    """The fields of the `supervisor_start` event: which process of which run this is."""
    return {
        "schema": SCHEMA,
        "unix_s": time.time(),
        "machine": os.uname().machine,
        "python": sys.version.split()[0],
        "argv": list(sys.argv),
        "run_id": spec.run_id,
        "row": spec.row,
        "process_index": spec.process_index,
    }


def watch(child: int, interval_s: float, events: Events, last: Last) -> int:
    """Sample until the child ends; forward signals meanwhile. Returns its wait status."""
    due = time.monotonic() + interval_s
    while True:
        received = signal.sigtimedwait(AWAITED, max(0.0, due - time.monotonic()))
        if received is None:
            sample(child, events, last)
            due = time.monotonic() + interval_s
        elif received.si_signo in FORWARDED:
            os.kill(child, received.si_signo)
        else:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended == child:
                return status


def sample(child: int, events: Events, last: Last) -> None:
    """One `memory_tree` event: the measured process and its descendants, the supervisor left out."""
    seen = memory.statuses(memory.descendants(child, memory.parents()))
    last.status = seen.get(child, last.status)
    if seen:
        events.write("memory_tree", **memory.tree_fields(seen))


def write_last_sample(events: Events, last: Last) -> None:
    """The `memory` event that survives a kill. A peak between the last sample and the end is not in it."""
    known = last.status
    events.write(
        "memory",
        phase="last_sample",
        role=ROLE,
        vm_hwm_bytes=known.vm_hwm_bytes if known else None,
        rss_bytes=known.rss_bytes if known else None,
        pss_bytes=None,
        reason="sampled from outside, without PSS" if known else "ended before the first sample",
        emulated=last.emulated,
    )
