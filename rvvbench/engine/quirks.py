"""What is unusual about a host for podman, and the containers.conf that copes with it.

Pure functions over `HostFacts`. Each quirk says what was found and what was done, for `rvvbench doctor` to show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rvvbench.engine.facts import HostFacts
from rvvbench.errors import EnvironmentLacks

# What podman asks for when nothing is configured (containers/common, pkg/config: default_ulimits for a root service).
PODMAN_NOFILE = 1048576
PODMAN_NPROC = 4194304
UNLIMITED = -1

INSTALL_PODMAN = "apt-get install podman runc"


@dataclass(frozen=True)
class Quirk:
    """One unusual thing. `settings` are lines of containers.conf, as (table, key, TOML value)."""

    name: str
    found: str
    done: str
    settings: tuple[tuple[str, str, str], ...]


def quirks(facts: HostFacts) -> tuple[Quirk, ...]:
    """The quirks of a host, in a fixed order. Raises EnvironmentLacks where no setting can help."""
    if facts.podman is None:
        raise EnvironmentLacks("podman is not installed", mend=INSTALL_PODMAN)
    if not facts.runtimes:
        raise EnvironmentLacks("no container runtime (runc or crun) is installed", mend="apt-get install runc")
    found = [_runtime(facts), _manager(facts), _limits(facts), _events(facts)]
    return tuple(quirk for quirk in found if quirk is not None)


def _runtime(facts: HostFacts) -> Quirk | None:
    if facts.cgroup_layout == "v2":
        return None
    if "runc" not in facts.runtimes:
        raise EnvironmentLacks(
            f"cgroups are mounted as {facts.cgroup_layout}, which crun refuses, and runc is not installed",
            mend="apt-get install runc",
        )
    return Quirk(
        "runtime",
        f"cgroups are mounted as {facts.cgroup_layout}, which crun refuses",
        "containers run under runc",
        (("engine", "runtime", '"runc"'),),
    )


def _manager(facts: HostFacts) -> Quirk | None:
    if facts.systemd:
        return None
    return Quirk(
        "cgroup_manager",
        "systemd does not run here",
        "podman manages cgroups itself (cgroupfs)",
        (("engine", "cgroup_manager", '"cgroupfs"'),),
    )


def _limits(facts: HostFacts) -> Quirk | None:
    if facts.may_raise_limits:
        return None
    nofile = _lowest(PODMAN_NOFILE, facts.hard_nofile, facts.nr_open)
    if nofile == PODMAN_NOFILE and _lowest(PODMAN_NPROC, facts.hard_nproc) == PODMAN_NPROC:
        return None
    # podman lowers its own nproc limit to the kernel's pid_max before it starts a container.
    nproc = _lowest(PODMAN_NPROC, facts.hard_nproc, facts.pid_max)
    return Quirk(
        "ulimits",
        f"hard limits (nofile {facts.hard_nofile}, nproc {facts.hard_nproc}) are below podman's and may not be raised",
        f"containers get nofile={nofile}, nproc={nproc}",
        (("containers", "default_ulimits", f'["nofile={nofile}:{nofile}", "nproc={nproc}:{nproc}"]'),),
    )


def _lowest(*limits: int | None) -> int:
    """The lowest of the limits that are known and set."""
    return min(limit for limit in limits if limit is not None and limit != UNLIMITED)


def _events(facts: HostFacts) -> Quirk | None:
    if facts.journald:
        return None
    return Quirk(
        "events_logger",
        "journald does not run here",
        "podman logs events to a file",
        (("engine", "events_logger", '"file"'), ("containers", "log_driver", '"k8s-file"')),
    )


def containers_conf(found: Sequence[Quirk]) -> str:
    """The containers.conf for these quirks. No networks in it: rvvbench uses the network modes none and host only."""
    tables: dict[str, list[str]] = {}
    for quirk in found:
        for table, key, value in quirk.settings:
            tables.setdefault(table, []).append(f"{key} = {value}")
    lines = ["# Written by rvvbench for its own podman service; changes here are overwritten."]
    for quirk in found:
        lines.append(f"# {quirk.name}: {quirk.found}; {quirk.done}.")
    for table in sorted(tables):
        lines += ["", f"[{table}]", *tables[table]]
    return "\n".join(lines) + "\n"
