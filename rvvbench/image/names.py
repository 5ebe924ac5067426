"""Names of architectures, and of our labels."""

from __future__ import annotations

import platform

from rvvbench.errors import EnvironmentLacks

LABEL = "org.rvvbench.image"

# Debian's and OCI's name, and what `uname -m` says.
MACHINES = {"riscv64": "riscv64", "amd64": "x86_64", "arm64": "aarch64"}


def host_arch() -> str:
    """This machine's architecture in Debian's words."""
    machine = platform.machine()
    for arch, name in MACHINES.items():
        if name == machine:
            return arch
    raise EnvironmentLacks(f"no recipe is for machines of kind {machine}")
