"""QEMU's log of executed translation blocks (`-d exec,nochain,in_asm`), line by line, as blocks in their order."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TRACE = re.compile(rb"^Trace \d+: 0x[0-9a-f]+ \[[0-9a-f]+/([0-9a-f]+)/([0-9a-f]+)/[0-9a-f]+\]")
_IN_ASM = re.compile(rb"^0x([0-9a-f]+):  [0-9a-f]+ ")
_STOPPED = b"Stopped execution of TB chain"

_NOT_A_BLOCK = -1
_TAKEN_BACK = -2

Node = int
"""Place of a block in `BlockLog.blocks`."""


@dataclass(frozen=True)
class Block:
    """A translation block: start address, and the emulator's flags at entry (the vector type is in them)."""

    address: int
    flags: int


@dataclass
class Translation:
    """What the emulator said when it translated the block at an address.

    `lengths` are all its numbers of instructions: more than one where it was translated again and cut elsewhere.
    """

    end: int
    """Address of the last instruction, of the newest translation."""
    lengths: set[int] = field(default_factory=set)


class BlockLog:
    """Reads a log piece by piece."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.translations: dict[int, Translation] = {}
        self._known: dict[bytes, Node] = {}
        self._nodes: dict[Block, Node] = {}
        self._at: dict[int, set[Node]] = {}
        self._rest = b""
        self._translated: list[int] = []
        # The newest block is handed out when the next line shows that it was not taken back.
        self._newest: list[Node] = []

    def feed(self, data: bytes) -> list[Node]:
        """The next piece of the log, cut anywhere -> the blocks that were executed, as far as that is known."""
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
        return nodes[:-1]

    def close(self) -> list[Node]:
        """The end of the log -> the last blocks."""
        nodes = [*self.feed(b"\n"), *self._newest]
        self._newest = []
        self._note_translation()
        return nodes

    def at(self, address: int) -> set[Node]:
        """The blocks that begin at an address; the same set grows as more of them come."""
        return self._at.setdefault(address, set())

    def _node(self, line: bytes) -> Node:
        known = self._known.get(line)
        if known is not None:
            return known
        if found := _TRACE.match(line):
            node = self._known[line] = self._node_of(Block(int(found[1], 16), int(found[2], 16)))
            return node
        if found := _IN_ASM.match(line):
            self._translated.append(int(found[1], 16))
        elif line.startswith(b"IN:"):
            self._note_translation()
        elif line.startswith(_STOPPED):
            return _TAKEN_BACK
        return _NOT_A_BLOCK

    def _node_of(self, block: Block) -> Node:
        node = self._nodes.get(block)
        if node is None:
            node = self._nodes[block] = len(self.blocks)
            self.blocks.append(block)
            self.at(block.address).add(node)
        return node

    def _note_translation(self) -> None:
        if self._translated:
            start, end = self._translated[0], self._translated[-1]
            translation = self.translations.setdefault(start, Translation(end))
            translation.end = end
            translation.lengths.add(len(self._translated))
            self._translated = []


def _without_taken_back(nodes: list[Node]) -> list[Node]:
    """A block that the emulator announced and then did not enter is announced again later."""
    kept: list[Node] = []
    for node in nodes:
        if node != _TAKEN_BACK:
            kept.append(node)
        elif kept:
            kept.pop()
    return kept
