"""A log of executed blocks as counts of block-to-block steps.

A program that is traced calls `rvvbench_mark` around what counts, in threes: mark, N calls, mark, 2 N calls, mark. What
is executed between the last mark of one case and the first of the next (preparing operands) is skipped.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.block_log import Block, BlockLog, Node

Step = tuple[Node, Node]

MARKS_PER_CASE = 3


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
        self._log = BlockLog()
        self.trace = Trace(self._log.blocks)
        self._mark_nodes = self._log.at(mark)
        self._marks = 0
        self._last: Node = -1

    @property
    def stretches(self) -> int:
        """Stretches between marks that count, so far."""
        return len(self.trace.steps)

    def feed(self, data: bytes) -> None:
        """The next piece of the log, cut anywhere."""
        self._walk(self._log.feed(data))

    def close(self) -> Trace:
        """The end of the log. Raises RvvbenchError where it ends inside of a case."""
        self._walk(self._log.close())
        self.trace.ends = {start: translation.end for start, translation in self._log.translations.items()}
        if self._marks % MARKS_PER_CASE != 0:
            raise RvvbenchError("the emulator's log ends inside of a case", where=f"after mark {self._marks}")
        return self.trace

    def _walk(self, nodes: list[Node]) -> None:
        begin = 0
        marks = sorted(i for mark in self._mark_nodes if mark in nodes for i, n in enumerate(nodes) if n == mark)
        for place in [*marks, len(nodes)]:
            stretch = nodes[begin:place]
            if self._marks % MARKS_PER_CASE != 0 and stretch:
                self.trace.steps[-1].update(zip([self._last, *stretch[:-1]], stretch, strict=True))
            if stretch:
                self._last = stretch[-1]
            if place < len(nodes):
                self._last = nodes[place]
                self._marks += 1
                if self._marks % MARKS_PER_CASE != 0:
                    self.trace.steps.append(Counter())
            begin = place + 1
