"""QEMU's log of executed translation blocks (`-d exec,nochain,in_asm`) as counts of block-to-block steps.

A program that is traced calls `rvvbench_mark` around what counts, in threes: mark, N calls, mark, 2 N calls, mark. What
is executed between the last mark of one case and the first of the next (preparing operands) is skipped.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from rvvbench.errors import RvvbenchError

_TRACE = re.compile(rb"^Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/([0-9a-f]+)/[0-9a-f]+\]")
_IN_ASM = re.compile(rb"^0x([0-9a-f]+):  [0-9a-f]+ ")
_STOPPED = b"Stopped execution of TB chain"

_NOT_A_BLOCK = -1
_TAKEN_BACK = -2

Node = int
Step = tuple[Node, Node]


@dataclass(frozen=True)
class Block:
    """A translation block: start address, and the emulator's flags at entry (the vector type is in them)."""

    address: int
    flags: int


@dataclass
class Trace:
    """What a log says.

    `steps[2 c]` counts the steps of case c called N times, `steps[2 c + 1]` those of 2 N calls. `ends` has the address
    of the last instruction of the block that starts at an address.
    """

    blocks: list[Block] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    steps: list[Counter[Step]] = field(default_factory=list)


class TraceReader:
    """Reads a log piece by piece. `mark` is the address of `rvvbench_mark`."""

    def __init__(self, mark: int) -> None:
        self.trace = Trace()
        self._mark = mark
        self._mark_nodes: set[Node] = set()
        self._marks = 0
        self._known: dict[bytes, Node] = {}
        self._nodes: dict[Block, Node] = {}
        self._rest = b""
        self._asm_start: int | None = None
        # The newest block is counted when the next line shows that it was not taken back.
        self._newest: list[Node] = []
        self._last: Node = -1

    def feed(self, data: bytes) -> None:
        """The next piece of the log, cut anywhere."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        try:
            nodes = [self._known[line] for line in lines]
        except KeyError:
            nodes = [node for line in lines if (node := self._node(line)) != _NOT_A_BLOCK]
        nodes = self._newest + nodes
        if _TAKEN_BACK in nodes:
            nodes = _without_taken_back(nodes)
        self._newest = nodes[-1:]
        self._walk(nodes[:-1])

    def close(self) -> Trace:
        """The end of the log. Raises RvvbenchError where it ends inside of a case."""
        self.feed(b"\n")
        self._walk(self._newest)
        if self._marks % 3 != 0:
            raise RvvbenchError("the emulator's log ends inside of a case", where=f"after mark {self._marks}")
        return self.trace

    def _node(self, line: bytes) -> Node:
        known = self._known.get(line)
        if known is not None:
            return known
        if found := _TRACE.match(line):
            node = self._known[line] = self._node_of(Block(int(found[1], 16), int(found[2], 16)))
            return node
        if found := _IN_ASM.match(line):
            self._asm(int(found[1], 16))
        elif line.startswith(b"IN:"):
            self._asm_start = None
        elif line.startswith(_STOPPED):
            return _TAKEN_BACK
        return _NOT_A_BLOCK

    def _node_of(self, block: Block) -> Node:
        node = self._nodes.get(block)
        if node is None:
            node = self._nodes[block] = len(self.trace.blocks)
            self.trace.blocks.append(block)
            if block.address == self._mark:
                self._mark_nodes.add(node)
        return node

    def _asm(self, address: int) -> None:
        if self._asm_start is None:
            self._asm_start = address
        self.trace.ends[self._asm_start] = address

    def _walk(self, nodes: list[Node]) -> None:
        begin = 0
        marks = sorted(i for mark in self._mark_nodes if mark in nodes for i, n in enumerate(nodes) if n == mark)
        for place in [*marks, len(nodes)]:
            stretch = nodes[begin:place]
            if self._marks % 3 != 0 and stretch:
                self.trace.steps[-1].update(zip([self._last, *stretch[:-1]], stretch, strict=True))
            if stretch:
                self._last = stretch[-1]
            if place < len(nodes):
                self._last = nodes[place]
                self._marks += 1
                if self._marks % 3 != 0:
                    self.trace.steps.append(Counter())
            begin = place + 1


def _without_taken_back(nodes: list[Node]) -> list[Node]:
    """A block that the emulator announced and then did not enter is announced again later."""
    kept: list[Node] = []
    for node in nodes:
        if node != _TAKEN_BACK:
            kept.append(node)
        elif kept:
            kept.pop()
    return kept
