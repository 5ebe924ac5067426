"""This machine, as far as choosing a target needs it."""

from __future__ import annotations

import ctypes
import platform

from rvvbench.target.select import Target, select

AT_HWCAP = 16
HWCAP_V = 1 << (ord("v") - ord("a"))


def has_vector() -> bool:
    """Whether the kernel reports the V extension (riscv64 only; AT_HWCAP, one bit per single-letter extension)."""
    if platform.machine() != "riscv64":
        return False
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.restype = ctypes.c_ulong
    return bool(getauxval(ctypes.c_ulong(AT_HWCAP)) & HWCAP_V)


def select_target(choice: str) -> Target:
    """The target that `choice` means here."""
    return select(choice, machine=platform.machine(), has_vector=has_vector())
