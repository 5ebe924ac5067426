"""All checks, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable

from rvvbench.doctor import hardware, software
from rvvbench.doctor.check import Check
from rvvbench.doctor.facts import Facts

CHECKS: tuple[Callable[[Facts], Check], ...] = (
    hardware.architecture,
    software.python,
    software.podman,
    software.runtime,
    software.limits,
    software.rootless,
    hardware.emulation,
    software.qemu,
    software.binfmt,
    software.mmdebstrap,
    software.arch_test,
    hardware.disk,
    hardware.memory,
    hardware.swap,
    hardware.network,
    hardware.board,
    hardware.vlen,
    hardware.governor,
    hardware.temperature,
)


def run_checks(facts: Facts) -> list[Check]:
    """What every check says about these facts; the images that this machine needs come last. Pure."""
    return [check(facts) for check in CHECKS] + software.images(facts)
