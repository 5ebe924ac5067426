"""Whether this machine executes RVV 1.0, asked of Linux. /proc/cpuinfo is not evidence: emulators invent it."""

from __future__ import annotations

import ctypes
import os

# riscv_hwprobe(2), and of the kernel's header asm/hwprobe.h the key of the extensions and in it the bit of V.
SYSCALL = 258
KEY_IMA_EXT_0 = 4
BIT_V = 2
# getauxval(AT_HWCAP) has one bit for each single-letter extension.
AT_HWCAP = 16
HWCAP_V = 1 << (ord("V") - ord("A"))


class _Pair(ctypes.Structure):
    _fields_ = (("key", ctypes.c_int64), ("value", ctypes.c_uint64))


def has_vector() -> bool:
    """Whether every processor of this machine has V; False where it is no RISC-V."""
    if os.uname().machine != "riscv64":
        return False
    return reports_vector(extension_mask(), hardware_capabilities())


def reports_vector(mask: int | None, capabilities: int) -> bool:
    """What a machine's answers mean: hwprobe's mask where the kernel has hwprobe (6.4 on), else the auxiliary vector.

    The auxiliary vector's letter stands for RVV 0.7 too, on kernels of vendors; hwprobe's bit is 1.0.
    """
    if mask is not None:
        return bool(mask >> BIT_V & 1)
    return bool(capabilities & HWCAP_V)


def extension_mask() -> int | None:
    """The value of RISCV_HWPROBE_KEY_IMA_EXT_0; None where the kernel has no hwprobe or does not know the key."""
    libc = ctypes.CDLL(None, use_errno=True)
    pair = _Pair(KEY_IMA_EXT_0, 0)
    failed = libc.syscall(
        ctypes.c_long(SYSCALL),
        ctypes.byref(pair),
        ctypes.c_size_t(1),
        ctypes.c_size_t(0),
        None,
        ctypes.c_uint(0),
    )
    return None if failed or pair.key != KEY_IMA_EXT_0 else int(pair.value)


def hardware_capabilities() -> int:
    """The auxiliary vector's AT_HWCAP."""
    libc = ctypes.CDLL(None)
    libc.getauxval.restype = ctypes.c_ulong
    return int(libc.getauxval(ctypes.c_ulong(AT_HWCAP)))
