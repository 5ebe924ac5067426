"""What the processor can do, asked of the kernel and of the processor. /proc/cpuinfo is not evidence: emulators
invent it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from dataclasses import dataclass

HWPROBE_SYSCALL = 258
HWPROBE_IMA_EXT_0 = 4

# Bits of RISCV_HWPROBE_KEY_IMA_EXT_0, from the Linux user-space header asm/hwprobe.h.
EXTENSION_BITS = {
    **{"v": 2, "zba": 3, "zbb": 4, "zbs": 5, "zbc": 7, "zfh": 27, "zfhmin": 28, "zfa": 32, "zicond": 35, "zfbfmin": 52},
    **{"zvbb": 17, "zvbc": 18, "zvkb": 19, "zvfh": 30, "zvfhmin": 31, "zvfbfmin": 53, "zvfbfwma": 54},
    **{"zve32x": 37, "zve32f": 38, "zve64x": 39, "zve64f": 40, "zve64d": 41, "zicbom": 55, "zicbop": 60},
}

# csrr a0, vlenb; ret
READ_VLENB = (0xC2202573).to_bytes(4, "little") + (0x00008067).to_bytes(4, "little")


@dataclass(frozen=True)
class Hardware:
    """`isa` {extension: present} or None; `isa_source` "hwprobe" or why not; `vlen_bits` or None with `vlen_reason`."""

    isa: dict[str, bool] | None
    isa_source: str
    vlen_bits: int | None
    vlen_reason: str | None


def probe() -> Hardware:
    """Ask this machine."""
    if os.uname().machine != "riscv64":
        reason = f"no RISC-V processor: {os.uname().machine}"
        return Hardware(None, reason, None, reason)
    mask, source = extension_mask()
    if mask is None:
        return Hardware(None, source, None, source)
    isa = extensions(mask)
    if not isa["v"]:
        return Hardware(isa, source, None, "hwprobe reports no V extension")
    return Hardware(isa, source, 8 * read_vlenb(), None)


def extensions(mask: int) -> dict[str, bool]:
    """The extensions of a RISCV_HWPROBE_KEY_IMA_EXT_0 value. False also means: a kernel too old to know the bit."""
    return {name: bool(mask >> bit & 1) for name, bit in EXTENSION_BITS.items()}


class _Pair(ctypes.Structure):
    _fields_ = (("key", ctypes.c_int64), ("value", ctypes.c_uint64))


def extension_mask() -> tuple[int | None, str]:
    """(mask, "hwprobe"), or (None, the reason). riscv_hwprobe answers with key -1 for a key that it does not know."""
    libc = ctypes.CDLL(None, use_errno=True)
    pair = _Pair(HWPROBE_IMA_EXT_0, 0)
    result = libc.syscall(
        ctypes.c_long(HWPROBE_SYSCALL),
        ctypes.byref(pair),
        ctypes.c_size_t(1),
        ctypes.c_size_t(0),
        None,
        ctypes.c_uint(0),
    )
    if result != 0:
        return None, f"riscv_hwprobe failed: {os.strerror(ctypes.get_errno())}"
    if pair.key != HWPROBE_IMA_EXT_0:
        return None, "riscv_hwprobe does not know RISCV_HWPROBE_KEY_IMA_EXT_0"
    return int(pair.value), "hwprobe"


def read_vlenb() -> int:
    """Bytes in a vector register. Executes two instructions; call it only where V is known to be present."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(READ_VLENB)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    flush = getattr(ctypes.CDLL(None), "__riscv_flush_icache", None)
    if flush is not None:
        flush(ctypes.c_void_p(address), ctypes.c_void_p(address + len(READ_VLENB)), ctypes.c_ulong(0))
    function = ctypes.CFUNCTYPE(ctypes.c_uint64)(address)
    # The page is left to the process: a buffer exported to ctypes cannot be unmapped.
    return int(function())
