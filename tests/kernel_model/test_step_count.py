"""Counting the instructions of decode steps in QEMU's log, by group of operators and library."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.step_count import Instructions, StepCounter
from tests.kernel_model.small_program import assembled, block

MARK = 0x1000
GROUPS = (0x1010, 0x1020)
LIBRARIES = {"ours": [(0x2000, 0x3000)], "torch": [(0x4000, 0x5000), (0x6000, 0x7000)]}
LENGTHS = {0x2000: 1, 0x2100: 3, 0x4000: 2, 0x6000: 5}
"""Of the program's blocks, and the library that each is in."""
OF = {0x2000: "ours", 0x2100: "ours", 0x4000: "torch", 0x6000: "torch"}

TRANSLATED = "".join(
    assembled(*range(start, start + 4 * length, 4))
    for start, length in {**LENGTHS, **dict.fromkeys((MARK, *GROUPS), 1)}.items()
)

Step = list[list[int]]
"""The blocks of each group in turn."""

steps = st.lists(st.lists(st.sampled_from(sorted(LENGTHS)), max_size=6), min_size=2, max_size=2)


def text_of(step: Step) -> str:
    return "".join(block(mark) + "".join(map(block, blocks)) for mark, blocks in zip(GROUPS, step, strict=True))


def way(once: list[Step], twice: list[Step]) -> str:
    return block(MARK) + "".join(map(text_of, once)) + block(MARK) + "".join(map(text_of, twice)) + block(MARK)


def counted(text: str, piece_bytes: int = 1 << 20) -> list[Instructions]:
    counter = StepCounter(MARK, GROUPS)
    data = text.encode()
    for begin in range(0, len(data), piece_bytes):
        counter.feed(data[begin : begin + piece_bytes])
    counter.close()
    return counter.instructions(LIBRARIES)


def expected(step: Step) -> dict[int, dict[str, int]]:
    sums: dict[int, Counter[str]] = {0: Counter(), 1: Counter()}
    for group, blocks in enumerate(step):
        for address in blocks:
            sums[group][OF[address]] += LENGTHS[address]
    return {group: dict(count) for group, count in sums.items() if count}


@given(ways=st.lists(steps, min_size=1, max_size=3), piece_bytes=st.integers(1, 400))
def test_a_step_has_the_instructions_of_its_blocks_however_the_log_is_cut(ways: list[Step], piece_bytes: int) -> None:
    outside = block(0x6000) * 3
    text = TRANSLATED + outside.join(["", *(way([one], [one, one]) for one in ways), ""])
    found = counted(text, piece_bytes)
    assert [one.by_group for one in found] == [expected(step) for step in ways]
    assert [one.unsteady for one in found] == [0] * len(ways)


def test_what_only_the_first_step_does_is_said_and_not_in_the_counts() -> None:
    first, later = [[0x2000, 0x6000], [0x4000]], [[0x2000], [0x4000]]
    (found,) = counted(TRANSLATED + way([first], [later, later]))
    assert found == Instructions({0: {"ours": 1, "torch": -5}, 1: {"torch": 2}}, unsteady=5 + 5)


def test_what_comes_after_the_mark_of_a_way_and_before_that_of_a_group_is_refused() -> None:
    with pytest.raises(RvvbenchError, match="of no group"):
        counted(TRANSLATED + block(MARK) + block(0x2000) + block(MARK) + block(MARK))


def test_a_log_that_ends_inside_of_a_step_is_refused() -> None:
    with pytest.raises(RvvbenchError, match="inside of a step"):
        counted(TRANSLATED + block(MARK) + block(GROUPS[0]) + block(0x2000))


def test_a_block_of_no_library_is_refused() -> None:
    stray = [[0x5800], []]
    with pytest.raises(RvvbenchError, match="of no library: 0x5800"):
        counted(TRANSLATED + assembled(0x5800) + way([stray], [stray, stray]))


def test_a_block_that_was_cut_in_two_ways_has_no_known_length() -> None:
    one = [[0x2100], []]
    again = assembled(0x2100, 0x2104)
    with pytest.raises(RvvbenchError, match="how many instructions") as refused:
        counted(TRANSLATED + again + way([one], [one, one]))
    assert "[2, 3]" in str(refused.value.where)


def test_a_block_that_was_translated_again_as_before_counts() -> None:
    one = [[0x2100], []]
    (found,) = counted(TRANSLATED * 2 + way([one], [one, one]))
    assert found.by_group == {0: {"ours": 3}}
