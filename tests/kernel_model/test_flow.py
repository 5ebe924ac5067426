"""From steps between blocks to runs of instructions under a known vector type."""

from __future__ import annotations

import pytest

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.flow import OUTSIDE, Flow, flow_of, steps_of_case
from rvvbench.kernel_model.tally import Tally, tally
from rvvbench.kernel_model.vector_type import VectorType
from tests.kernel_model.small_program import DRIVER, ENTER, LEAVE, LOOP, MARK, PROGRAM, TRANSLATED, log, read


def counts(function: str) -> bool:
    return function.startswith("_ZN7sgl_rvv")


def flow(text: str) -> Flow:
    trace = read(text)
    return flow_of(steps_of_case(trace, 0, PROGRAM, counts), trace, PROGRAM)


def texts(found: Flow) -> dict[str, int]:
    """The first instruction of each run, and how often it was executed."""
    return {found.runs[node].instructions[0].text: count for node, count in found.executions().items()}


def test_the_difference_of_twice_as_many_calls_is_what_one_round_of_calls_costs() -> None:
    loop, entry, leave = "vle32.v v0, (a1)", "vsetvli zero, zero, e32, m2, ta, ma", "ret"
    assert texts(flow(log(rounds=7))) == {entry: 1, loop: 7, leave: 1}
    assert texts(flow(log(rounds=7, calls=3))) == {entry: 3, loop: 21, leave: 3}


def test_the_driver_around_the_operator_is_left_out() -> None:
    found = flow(log(rounds=2))
    assert all(i.address >= 0x2000 for run in found.runs.values() for i in run.instructions)
    assert sum(count for (before, _), count in found.steps.items() if before == OUTSIDE) == 1


def test_the_vector_type_that_an_earlier_block_set_is_known_in_the_loop() -> None:
    loop = next(run for run in flow(log(2)).runs.values() if run.instructions[0].address == 0x2004)
    assert loop.vector_type == VectorType(32, "m2")


def test_blocks_that_always_follow_each_other_are_one_run() -> None:
    found = flow(log(rounds=1))
    assert [len(run.instructions) for run in found.runs.values()] == [6]
    assert found.steps == {(OUTSIDE, 2): 1, (2, OUTSIDE): 1}


def test_a_vector_instruction_of_unknown_type_is_refused() -> None:
    straight_into_the_loop = TRANSLATED + MARK + (LOOP + LEAVE + DRIVER) + MARK + (LOOP + LEAVE + DRIVER) * 2 + MARK
    with pytest.raises(RvvbenchError, match=r"vector type of 'vle32.v v0, \(a1\)' is not known"):
        flow(straight_into_the_loop)


def test_an_operator_that_does_something_else_at_every_call_is_refused() -> None:
    uneven = TRANSLATED + MARK + ENTER + LOOP + LEAVE + DRIVER + MARK + (ENTER + LEAVE + DRIVER) * 2 + MARK
    with pytest.raises(RvvbenchError, match="not do the same at every call"):
        flow(uneven)


def test_instructions_and_bytes_are_summed_over_executions() -> None:
    assert tally(flow(log(rounds=5)), vlen_bits=256) == Tally(
        instructions=1 + 5 * 4 + 1, vector_instructions=10, vector_settings=1, loaded_bytes=5 * 64, stored_bytes=0
    )
