"""Executed blocks of whole decode steps as instructions, by group of operators and by library.

A program that is counted calls a mark around N steps and 2 N steps of each way to compute them, in threes as in
trace.py, and before each group of operators in a step that group's own mark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.block_log import BlockLog, Node
from rvvbench.kernel_model.trace import MARKS_PER_CASE

Ranges = Sequence[tuple[int, int]]
"""Addresses of code, [begin, end)."""


@dataclass(frozen=True)
class Executed:
    """How often blocks ran in one stretch, by the number of their group."""

    by_group: dict[int, Counter[Node]]


@dataclass(frozen=True)
class Instructions:
    """Instructions of N steps by group number and library.

    They are those of 2 N steps less those of N, so that what happens once in each stretch is not in them. `unsteady` is
    what N steps executed more than that: 0 where every step does the same and nothing else is between the marks.
    """

    by_group: dict[int, dict[str, int]]
    unsteady: int


class StepCounter:
    """Reads a log piece by piece. `mark` is the address of the mark, `groups` are those of the groups' marks."""

    def __init__(self, mark: int, groups: Sequence[int]) -> None:
        self._log = BlockLog()
        self._mark_nodes = self._log.at(mark)
        self._group_nodes = [self._log.at(address) for address in groups]
        self._marks = 0
        self._group: int | None = None
        self._executed: list[Executed] = []

    @property
    def stretches(self) -> int:
        """Stretches between marks that count, so far."""
        return len(self._executed)

    def feed(self, data: bytes) -> None:
        """The next piece of the log, cut anywhere."""
        self._walk(self._log.feed(data))

    def close(self) -> None:
        """The end of the log. Raises RvvbenchError where it ends between the marks of a way."""
        self._walk(self._log.close())
        if self._marks % MARKS_PER_CASE != 0:
            raise RvvbenchError("the emulator's log ends inside of a step", where=f"after mark {self._marks}")

    def instructions(self, libraries: Mapping[str, Ranges]) -> list[Instructions]:
        """For each way in its order, what N steps executed in `libraries`, by name where their code was."""
        places = sorted((begin, end, name) for name, ranges in libraries.items() for begin, end in ranges)
        begins = [begin for begin, _, _ in places]

        def library_of(address: int) -> str:
            place = bisect_right(begins, address) - 1
            if place < 0 or address >= places[place][1]:
                raise RvvbenchError(f"the emulator logged a block that is of no library: {address:#x}")
            return places[place][2]

        def sums(counts: Counter[Node]) -> Counter[str]:
            total: Counter[str] = Counter()
            for node, count in counts.items():
                address = self._log.blocks[node].address
                total[library_of(address)] += count * self._length(address)
            return total

        return [_difference(once, twice, sums) for once, twice in zip(*[iter(self._executed)] * 2, strict=True)]

    def _length(self, address: int) -> int:
        translation = self._log.translations.get(address)
        if translation is None or len(translation.lengths) != 1:
            raise RvvbenchError(
                f"how many instructions a block has is not known: {address:#x}",
                where=f"translated with {sorted(translation.lengths) if translation else 'no'} instructions",
            )
        (length,) = translation.lengths
        return length

    def _walk(self, nodes: list[Node]) -> None:
        marks = self._mark_nodes.union(*self._group_nodes)
        begin = 0
        places = [] if marks.isdisjoint(nodes) else [i for i, node in enumerate(nodes) if node in marks]
        for place in places:
            self._count(nodes[begin:place])
            self._pass(nodes[place])
            begin = place + 1
        self._count(nodes[begin:])

    def _count(self, nodes: list[Node]) -> None:
        if self._marks % MARKS_PER_CASE == 0 or not nodes:
            return
        if self._group is None:
            address = self._log.blocks[nodes[0]].address
            raise RvvbenchError(f"a block of no group was executed in a step: {address:#x}", where="the driver's marks")
        self._executed[-1].by_group.setdefault(self._group, Counter()).update(nodes)

    def _pass(self, mark: Node) -> None:
        if mark in self._mark_nodes:
            self._marks += 1
            self._group = None
            if self._marks % MARKS_PER_CASE != 0:
                self._executed.append(Executed({}))
        else:
            self._group = next(number for number, nodes in enumerate(self._group_nodes) if mark in nodes)


def _difference(once: Executed, twice: Executed, sums: Callable[[Counter[Node]], Counter[str]]) -> Instructions:
    first = {group: sums(counts) for group, counts in once.by_group.items()}
    both = {group: sums(counts) for group, counts in twice.by_group.items()}
    if first.keys() != both.keys():
        raise RvvbenchError("twice as many steps have other groups of operators", where="the driver's marks")
    next_ones = {
        group: {name: both[group][name] - first[group][name] for name in sorted({*both[group], *first[group]})}
        for group in both
    }
    return Instructions(next_ones, _total(first) - _total(next_ones))


def _total(by_group: Mapping[int, Mapping[str, int]]) -> int:
    return sum(sum(counts.values()) for counts in by_group.values())
