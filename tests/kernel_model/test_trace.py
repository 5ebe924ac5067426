"""Counting steps between blocks in QEMU's log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.errors import RvvbenchError
from tests.kernel_model.small_program import ENTER, LEAVE, LOOP, MARK, call, log, read


def test_only_what_is_between_the_marks_of_a_case_counts() -> None:
    trace = read(log(rounds=3))
    assert len(trace.steps) == 2
    once, twice = (sum(steps.values()) for steps in trace.steps)
    assert (once, twice) == (7, 14)  # driver, entry, three rounds, return, driver


def test_steps_name_the_block_before_and_the_block_after() -> None:
    trace = read(log(rounds=3))
    place = {block.address: node for node, block in enumerate(trace.blocks)}
    once = trace.steps[0]
    assert once[place[0x1000], place[0x1010]] == 1
    assert once[place[0x2000], place[0x2004]] == 1
    assert once[place[0x2004], place[0x2004]] == 2
    assert once[place[0x2004], place[0x2010]] == 1


@given(rounds=st.lists(st.integers(1, 40), min_size=1, max_size=4), piece_bytes=st.integers(1, 400))
def test_it_does_not_matter_where_the_log_is_cut(rounds: list[int], piece_bytes: int) -> None:
    text = "".join(log(number) for number in rounds)
    whole, pieces = read(text), read(text, piece_bytes)
    assert (whole.steps, whole.blocks, whole.ends) == (pieces.steps, pieces.blocks, pieces.ends)
    assert len(whole.steps) == 2 * len(rounds)


def test_a_block_extends_to_the_last_instruction_that_the_emulator_translated() -> None:
    assert read(log(1)).ends == {0x1000: 0x1000, 0x1010: 0x1014, 0x2000: 0x2000, 0x2004: 0x200E, 0x2010: 0x2010}


def test_a_block_that_the_emulator_announced_and_did_not_enter_counts_once() -> None:
    stopped = "Stopped execution of TB chain before 0x7f00 [0000000000002004] name\n"
    interrupted = log(3).replace(ENTER + LOOP, ENTER + LOOP + stopped + LOOP)
    assert interrupted.count(stopped) == 3
    for piece_bytes in (1 << 20, 37):
        assert read(interrupted, piece_bytes).steps == read(log(3)).steps


def test_blocks_of_one_address_with_other_flags_are_others() -> None:
    other = LOOP.replace("/00000002/", "/00000003/")
    trace = read(MARK + ENTER + LOOP + other + LEAVE + MARK + MARK)
    assert len([block for block in trace.blocks if block.address == 0x2004]) == 2


def test_a_log_that_ends_inside_of_a_case_is_refused() -> None:
    with pytest.raises(RvvbenchError, match="inside of a case"):
        read(MARK + call(1) + MARK)
