"""What is asked of llvm-mca, and what its answers add up to."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.flow import Run, flow_of, steps_of_case
from rvvbench.kernel_model.price import Price, assembly, cycles, parse_prices, sequence, wanted
from rvvbench.kernel_model.program import Instruction
from tests.kernel_model.small_program import PROGRAM, log, read

LOOP = """\
# LLVM-MCA-RISCV-LMUL M2
# LLVM-MCA-RISCV-SEW E32
vle32.v v0, (a1)
vfmacc.vf v8, fa1, v10
addi a5, a5, -0x1
bnez a5, 8
"""


def loop_flow(rounds: int):  # type: ignore[no-untyped-def]
    trace = read(log(rounds))
    return flow_of(steps_of_case(trace, 0, PROGRAM, lambda f: f.startswith("_ZN7sgl_rvv")), trace, PROGRAM)


def test_the_vector_type_in_force_is_injected_before_a_run_and_after_each_vsetvli() -> None:
    flow = loop_flow(9)
    by_start = {run.instructions[0].address: run for run in flow.runs.values()}
    assert sequence(by_start[0x2004]).text == LOOP
    entry = "vsetvli zero, zero, e32, m2, ta, ma\n# LLVM-MCA-RISCV-LMUL M2\n# LLVM-MCA-RISCV-SEW E32\n"
    assert sequence(by_start[0x2000], by_start[0x2004]).text == entry + LOOP


def test_a_prefetch_is_priced_as_a_load() -> None:
    run = Run((Instruction(0, 4, "prefetch.r 0x400(a1)"), Instruction(4, 4, "fence rw, rw")), None)
    assert sequence(run).text == "lb zero, 0x400(a1)\nnop\n"


def test_runs_are_priced_alone_in_pairs_and_loops_in_their_steady_state() -> None:
    asked = wanted(loop_flow(9))
    assert (len(asked[1]), len(asked[100]), len(asked[200])) == (3 + 2, 1, 1)


def test_cycles_are_entry_plus_steps_plus_rounds_of_the_loop() -> None:
    flow = loop_flow(9)
    entry, loop, leave = (
        flow.runs[node] for node in sorted(flow.runs, key=lambda n: flow.runs[n].instructions[0].address)
    )
    prices = {
        (sequence(entry).key, 1): Price(3, Fraction(1)),
        (sequence(loop).key, 1): Price(20, Fraction(9, 2)),
        (sequence(leave).key, 1): Price(2, Fraction(1, 2)),
        (sequence(entry, loop).key, 1): Price(21, Fraction(0)),
        (sequence(loop, leave).key, 1): Price(22, Fraction(0)),
        (sequence(loop).key, 100): Price(700, Fraction(0)),
        (sequence(loop).key, 200): Price(1350, Fraction(0)),
    }
    found = cycles(flow, prices)
    assert found.in_order == 3 + (21 - 3) + 8 * Fraction(650, 100) + (22 - 20)
    assert found.floor == 1 + 9 * Fraction(9, 2) + Fraction(1, 2)


def test_a_missing_price_is_an_error_and_not_zero() -> None:
    with pytest.raises(RvvbenchError, match="no price"):
        cycles(loop_flow(2), {})


def test_equal_sequences_have_equal_names_and_regions_are_sorted() -> None:
    asked = wanted(loop_flow(9))[1]
    assert wanted(loop_flow(4))[1] == asked
    names = [line.split()[-1] for line in assembly(asked).splitlines() if "BEGIN" in line]
    assert names == sorted(names) and len(set(names)) == len(asked)


def test_llvm_mcas_answer_is_read_and_checked() -> None:
    region = {"Name": "s1", "SummaryView": {"Iterations": 1, "TotalCycles": 6, "BlockRThroughput": 1.3333333333333333}}
    document = json.dumps({"CodeRegions": [region]})
    assert parse_prices(document, 1) == {("s1", 1): Price(6, Fraction(4, 3))}
    with pytest.raises(RvvbenchError, match="1 iterations, not 100"):
        parse_prices(document, 100)
    with pytest.raises(RvvbenchError, match="not what version 22 gives"):
        parse_prices("nonsense", 1)
