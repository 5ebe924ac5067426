"""A riscv64 program as its disassembly tells it: instructions by address, and the functions that hold them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from rvvbench.errors import RvvbenchError

_LABEL = re.compile(r"^([0-9a-f]{8,16}) <(.+)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+): ((?:[0-9a-f]{4}|[0-9a-f]{8}))\s+(\S.*)$")
_TARGET = re.compile(r"(?:0x)?[0-9a-f]+ <.*>$")
_JUMPS = re.compile(r"^(?:b(?:eq|ne|lt|ge|ltu|geu|eqz|nez|lez|gez|ltz|gtz|gt|le|gtu|leu)|j|jal|call|tail)\b")

# The place that a jump goes to does not matter to its price, but an assembler must be able to reach it.
_SOMEWHERE = "8"


@dataclass(frozen=True)
class Instruction:
    """One instruction: its text as an assembler takes it, jump targets replaced, without comments."""

    address: int
    size: int
    text: str

    @property
    def mnemonic(self) -> str:
        """The first word."""
        return self.text.split(" ", 1)[0]


@dataclass(frozen=True)
class Program:
    """Instructions by address and the sorted starts of functions with their (mangled) names."""

    instructions: dict[int, Instruction]
    starts: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def function_at(self, address: int) -> str:
        """Name of the function that holds `address`; empty before the first."""
        place = bisect_right(self.starts, address) - 1
        return self.names[place] if place >= 0 else ""

    def address_of(self, name: str) -> int:
        """Start of the function `name`; raises RvvbenchError where there is none."""
        if name not in self.names:
            raise RvvbenchError(f"the traced program has no function {name}", where="its disassembly")
        return self.starts[self.names.index(name)]

    def span(self, first: int, last: int) -> tuple[Instruction, ...]:
        """The instructions from address `first` to the one at `last`, both included."""
        found, address = [], first
        while address <= last:
            instruction = self.instructions.get(address)
            if instruction is None:
                raise RvvbenchError(
                    f"an executed instruction is not in the disassembly: {address:#x}", where="the traced program"
                )
            found.append(instruction)
            address += instruction.size
        return tuple(found)

    def moved(self, by: int) -> Program:
        """The same code `by` bytes further up: a library where it was loaded."""
        there = (replace(one, address=one.address + by) for one in self.instructions.values())
        return Program({one.address: one for one in there}, [start + by for start in self.starts], self.names)


def parse_disassembly(lines: Iterable[str]) -> Program:
    """The text of `llvm-objdump -d` (no `-M` options) as a program."""
    program = Program({})
    for line in lines:
        if label := _LABEL.match(line):
            program.starts.append(int(label[1], 16))
            program.names.append(label[2])
        elif found := _INSTRUCTION.match(line):
            address = int(found[1], 16)
            program.instructions[address] = Instruction(address, len(found[2]) // 2, assembler_text(found[3]))
    order = sorted(range(len(program.starts)), key=program.starts.__getitem__)
    return Program(program.instructions, [program.starts[i] for i in order], [program.names[i] for i in order])


def assembler_text(disassembled: str) -> str:
    """A disassembled instruction as an assembler takes it: one space, no comment, no absolute jump target."""
    mnemonic, _, operands = " ".join(disassembled.split("#")[0].split()).partition(" ")
    operands = _TARGET.sub(_SOMEWHERE, operands) if _JUMPS.match(mnemonic) else operands.split(" <")[0]
    return f"{mnemonic} {operands}".strip()
