"""Watches a process tree and the machine under it while a run goes on, from outside.

Samples are plain dicts, handed out as they are taken. Every one has `event`, `t_ns` (CLOCK_MONOTONIC, the clock of the
runner's events) and `pid` (the sampler's). What a source does not tell is null, and `reasons` says why, under the path
of the field, in the first event that lacks it.

`sampler_start`  `schema`, `root_pid`, `interval_s`, `pss_interval_s`, `cpu_share`
`sample`         `processes` [{`pid`, `command`, `rss_bytes`, `vm_hwm_bytes`, `swap_bytes`, `cpu_s`}], `rss_sum_bytes`,
                 `tree_cpu_s`, `cgroup` (CgroupMemory), `conditions`, `cpu`, `governors` (Moment). No processes: the
                 tree has ended
`sample_pss`     `processes` [{`pid`, `pss_bytes`}], `pss_sum_bytes` (null where one of them is)
`sampler_end`    `samples`, `elapsed_s`, `cpu_s` (what the sampler itself used), `longest_gap_s`, `error`
"""

from __future__ import annotations

import itertools
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rvvbench.observe.cgroup_memory import memory_group, read_cgroup_memory
from rvvbench.observe.kernel_files import Roots
from rvvbench.observe.moment import Moment, moment
from rvvbench.observe.process_tree import Look, ProcessTree, read_pss_bytes

SCHEMA = "rvvbench/samples/1"
PSS_PART = 0.25

Sample = dict[str, Any]
Emit = Callable[[Sample], None]
Wait = Callable[[float], bool]
"""Waits so many seconds, or less when the sampler is to stop: then True."""


@dataclass(frozen=True)
class Pace:
    """How often. `interval_s` for everything but PSS, `pss_interval_s` for PSS (None: never), for which the kernel
    walks every page of a process.

    `cpu_share` of one core is what sampling may use, `PSS_PART` of it for PSS. What costs more than that on this
    machine is done less often than the intervals say.
    """

    interval_s: float = 1.0
    pss_interval_s: float | None = 10.0
    cpu_share: float = 0.008

    def pause_s(self, cost_s: float) -> float:
        """From the start of one sample to the start of the next, when one costs `cost_s` of CPU time."""
        part = 1.0 if self.pss_interval_s is None else 1.0 - PSS_PART
        return max(self.interval_s, cost_s / (self.cpu_share * part))

    def pss_pause_s(self, cost_s: float) -> float:
        """The same for PSS; for ever where it is not asked for."""
        return (
            math.inf if self.pss_interval_s is None else max(self.pss_interval_s, cost_s / (self.cpu_share * PSS_PART))
        )


@dataclass(frozen=True)
class Edges:
    """What the sampler touches the machine with."""

    roots: Roots = field(default_factory=Roots)
    clock_ns: Callable[[], int] = time.monotonic_ns
    own_cpu_s: Callable[[], float] = time.thread_time
    moment: Callable[[Roots], Moment] = moment
    ticks_per_s: int | None = None


class Sampler:
    """Samples the tree below `root_pid` (a number of this host). `emit` is called in the thread that calls `run`.

    `failure` is None, or why sampling ended before it was to.
    """

    def __init__(self, root_pid: int, emit: Emit, pace: Pace | None = None, edges: Edges | None = None) -> None:
        self.failure: str | None = None
        self._pace = pace or Pace()
        self._edges = edges or Edges()
        self._emit = emit
        self._root_pid = root_pid
        self._tree = ProcessTree(root_pid, self._edges.roots.proc, ticks_per_s=self._edges.ticks_per_s)
        self._told: set[str] = set()
        self._times_ns: list[int] = []

    def run(self, wait: Wait) -> None:
        """Sample until `wait` says to stop or the tree has ended, with a last sample at that moment."""
        started_ns, cpu_s = self._edges.clock_ns(), self._edges.own_cpu_s()
        try:
            self._write(
                "sampler_start",
                schema=SCHEMA,
                root_pid=self._root_pid,
                interval_s=self._pace.interval_s,
                pss_interval_s=self._pace.pss_interval_s,
                cpu_share=self._pace.cpu_share,
            )
            self._sample_until(wait)
        except Exception as error:  # whatever it is, the run that is watched goes on, and is told
            self.failure = f"{type(error).__name__}: {error}"
        ends_ns = self._edges.clock_ns()
        times = [started_ns, *self._times_ns, ends_ns]
        try:
            self._write(
                "sampler_end",
                samples=len(self._times_ns),
                elapsed_s=(ends_ns - started_ns) / 1e9,
                cpu_s=self._edges.own_cpu_s() - cpu_s,
                longest_gap_s=max(later - earlier for earlier, later in itertools.pairwise(times)) / 1e9,
                error=self.failure,
            )
        except Exception as error:
            self.failure = self.failure or f"{type(error).__name__}: {error}"

    def _sample_until(self, wait: Wait) -> None:
        group, no_group = memory_group(self._root_pid, self._edges.roots)
        pss_due_s = -math.inf if self._pace.pss_interval_s is not None else math.inf
        stop = False
        while True:
            start_ns, cost_s = self._edges.clock_ns(), self._edges.own_cpu_s()
            look = self._tree.look()
            self._sample(look, group, no_group)
            cost_s = self._edges.own_cpu_s() - cost_s
            if stop or not look.members:
                return
            if start_ns / 1e9 >= pss_due_s:
                pss_due_s = start_ns / 1e9 + self._pace.pss_pause_s(self._sample_pss(look))
            due_ns = start_ns + round(self._pace.pause_s(cost_s) * 1e9)
            stop = wait(max(0.0, (due_ns - self._edges.clock_ns()) / 1e9))

    def _sample(self, look: Look, group: Path | None, no_group: str) -> None:
        reasons: dict[str, str] = {}
        if group is None:
            cgroup = None
            reasons["cgroup"] = no_group
        else:
            memory, lacking = read_cgroup_memory(group)
            if group.exists():
                cgroup = memory.plain()
                reasons |= {f"cgroup.{name}": reason for name, reason in lacking.items()}
            else:
                cgroup = None
                reasons["cgroup"] = "the cgroup is gone: the tree has ended"
        if not look.members:
            reasons |= dict.fromkeys(("rss_sum_bytes", "tree_cpu_s"), "the tree has ended")
        if any(member.memory.swap_bytes is None for member in look.members):
            reasons["processes.swap_bytes"] = "/proc/PID/status has no VmSwap (a kernel without swap)"
        t_ns = self._edges.clock_ns()
        machine = self._edges.moment(self._edges.roots).plain()
        reasons |= {f"conditions.{name}": why for name, why in machine["conditions"].pop("reasons").items()}
        if machine["cpu"] is None:
            reasons["cpu"] = "/proc/stat has no line cpu that can be read"
        if machine["governors"] is None:
            reasons["governors"] = "the kernel offers no CPU frequency policy (cpufreq)"
        self._times_ns.append(t_ns)
        self._write(
            "sample",
            reasons,
            t_ns=t_ns,
            processes=[
                {
                    "pid": member.pid,
                    "command": member.command,
                    "rss_bytes": member.memory.rss_bytes,
                    "vm_hwm_bytes": member.memory.vm_hwm_bytes,
                    "swap_bytes": member.memory.swap_bytes,
                    "cpu_s": member.cpu_s,
                }
                for member in look.members
            ],
            rss_sum_bytes=sum(member.memory.rss_bytes for member in look.members) if look.members else None,
            tree_cpu_s=look.cpu_s,
            cgroup=cgroup,
            **machine,
        )

    def _sample_pss(self, look: Look) -> float:
        """Write PSS of every member; the CPU time it took, seconds."""
        cost_s = self._edges.own_cpu_s()
        found = {member.pid: read_pss_bytes(member.pid, self._edges.roots.proc) for member in look.members}
        whys = [why for _, why in found.values() if why is not None]
        values = [value for value, _ in found.values() if value is not None]
        self._write(
            "sample_pss",
            {"pss_sum_bytes": whys[0], "processes.pss_bytes": whys[0]} if whys else {},
            processes=[{"pid": pid, "pss_bytes": value} for pid, (value, _) in found.items()],
            pss_sum_bytes=None if whys else sum(values),
        )
        return self._edges.own_cpu_s() - cost_s

    def _write(self, event: str, reasons: dict[str, str] | None = None, /, **fields: Any) -> None:
        new = {path: why for path, why in (reasons or {}).items() if path not in self._told}
        self._told |= new.keys()
        common = {"event": event, "t_ns": self._edges.clock_ns(), "pid": os.getpid()}
        self._emit({**common, **fields, **({"reasons": new} if new else {})})


@contextmanager
def sampling(root_pid: int, emit: Emit, pace: Pace | None = None, edges: Edges | None = None) -> Iterator[Sampler]:
    """Sample in a thread of its own while the body runs. Look at `failure` afterwards: nothing is raised here."""
    sampler = Sampler(root_pid, emit, pace, edges)
    stop = threading.Event()
    thread = threading.Thread(target=sampler.run, args=(stop.wait,), name="sampler", daemon=True)
    thread.start()
    try:
        yield sampler
    finally:
        stop.set()
        thread.join()
