"""A small program with a loop, its disassembly and the emulator's log of it, as the real tools write them."""

from __future__ import annotations

from rvvbench.kernel_model.program import Program, parse_disassembly
from rvvbench.kernel_model.trace import Trace, TraceReader

DISASSEMBLY = """
/in/program:\tfile format elf64-littleriscv

Disassembly of section .text:

0000000000001000 <rvvbench_mark>:
    1000: 8082         \tret

0000000000001010 <_ZN12kernel_bench3runEv>:
    1010: 0ff0 00ef    \tnop
    1014: 00000013     \tnop

0000000000002000 <_ZN7sgl_rvv6kernelEv>:
    2000: 0d107057     \tvsetvli\tzero, zero, e32, m2, ta, ma
    2004: 0205e007     \tvle32.v\tv0, (a1)
    2008: b2a5d457     \tvfmacc.vf\tv8, fa1, v10
    200c: 17fd         \taddi\ta5, a5, -0x1
    200e: fbfd         \tbnez\ta5, 0x2004 <_ZN7sgl_rvv6kernelEv+0x4>
    2010: 8082         \tret
"""


def block(address: int, flags: int = 0) -> str:
    """A line of `-d exec`."""
    return f"Trace 0: 0x7f00{address:08x} [00000000/{address:016x}/{flags:08x}/00000200] name\n"


def assembled(*addresses: int) -> str:
    """A block of `-d in_asm`."""
    lines = "".join(f"0x{address:08x}:  8082              ret\n" for address in addresses)
    return f"----------------\nIN: name\n{lines}\n"


MARK = block(0x1000)
DRIVER = block(0x1010)
ENTER, LOOP, LEAVE = block(0x2000, 1), block(0x2004, 2), block(0x2010, 2)
TRANSLATED = (
    assembled(0x1000) + assembled(0x1010, 0x1014) + assembled(0x2000) + assembled(0x2004, 0x2008, 0x200C, 0x200E)
    + assembled(0x2010)
)  # fmt: skip


def call(rounds: int) -> str:
    """The kernel called once, with so many rounds of its loop."""
    return DRIVER + ENTER + LOOP * rounds + LEAVE + DRIVER


def log(rounds: int, calls: int = 1) -> str:
    """A whole case: preparation, mark, N calls, mark, 2 N calls, mark."""
    return TRANSLATED + DRIVER * 5 + MARK + call(rounds) * calls + MARK + call(rounds) * 2 * calls + MARK


def read(text: str, piece_bytes: int = 1 << 20) -> Trace:
    """The trace of a log that comes in pieces."""
    reader = TraceReader(0x1000)
    data = text.encode()
    for begin in range(0, len(data), piece_bytes):
        reader.feed(data[begin : begin + piece_bytes])
    return reader.close()


PROGRAM: Program = parse_disassembly(DISASSEMBLY.splitlines())
