"""Prices of instruction sequences: what is asked of llvm-mca, and what its answers say of a whole flow.

Two figures, both with data in L1 and without what the timing model does not know (caches, TLB, branches):

- in order: llvm-mca's Total Cycles T of the in-order pipeline, dependences included. A step from run A to run B costs
  T(A B) - T(A), entering A costs T(A), and going round a loop of one run costs (T(A x 200) - T(A x 100)) / 100.
- floor: executions times Block RThroughput, the pressure on the busiest unit, dependences left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.flow import OUTSIDE, Flow, Run
from rvvbench.kernel_model.vector_type import VectorType, sets_vector_type, vector_type_of

ITERATIONS = (1, 100, 200)
"""Repetitions that llvm-mca is run with: once, and twice far into the steady state of a loop."""

CPU = "spacemit-x60"
# Calls are not what is modelled, and the default would price each at 100 cycles.
OPTIONS = ("-mtriple=riscv64", f"-mcpu={CPU}", "-call-latency=1", "-json", "-all-views=0", "-summary-view")

# No scheduling class in the model; cost of a nop, said in the documentation.
_UNPRICED = ("fence", "ebreak", "ecall", "unimp")
# Nor has this; priced as the load that it is, of whose result nothing is made.
_PREFETCH = "prefetch.r "


@dataclass(frozen=True)
class Sequence:
    """Assembly text of one or several runs after each other, with the vector types in force injected."""

    text: str

    @property
    def key(self) -> str:
        """A name for equal texts, a legal label."""
        return "s" + hashlib.sha256(self.text.encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Price:
    """llvm-mca of one sequence at one number of iterations; `rthroughput` is a block's Block RThroughput."""

    total_cycles: int
    rthroughput: Fraction


Prices = Mapping[tuple[str, int], Price]
"""By sequence key and iterations."""


@dataclass(frozen=True)
class Cycles:
    """Modelled cycles of a flow."""

    in_order: Fraction
    floor: Fraction


def sequence(*runs: Run) -> Sequence:
    """The text to price for runs after each other."""
    lines: list[str] = []
    for run in runs:
        lines += _in_force(run.vector_type)
        for instruction in run.instructions:
            if instruction.mnemonic in _UNPRICED:
                lines.append("nop")
                continue
            lines.append(instruction.text.replace(_PREFETCH, "lb zero, "))
            if sets_vector_type(instruction.text):
                lines += _in_force(vector_type_of(instruction.text))
    return Sequence("\n".join(lines) + "\n")


def wanted(flow: Flow) -> dict[int, set[Sequence]]:
    """What must be priced, by iterations."""
    once = {sequence(run) for run in flow.runs.values()}
    loops = set()
    for before, after in flow.steps:
        if OUTSIDE in (before, after):
            continue
        if before == after:
            loops.add(sequence(flow.runs[before]))
        else:
            once.add(sequence(flow.runs[before], flow.runs[after]))
    return {1: once, 100: loops, 200: loops}


def cycles(flow: Flow, prices: Prices) -> Cycles:
    """Cycles of the whole flow; raises RvvbenchError where a price is missing."""
    in_order = Fraction(0)
    for (before, after), count in flow.steps.items():
        if after == OUTSIDE:
            continue
        if before == OUTSIDE:
            step = Fraction(_of(prices, sequence(flow.runs[after])).total_cycles)
        elif before == after:
            loop = sequence(flow.runs[after])
            step = Fraction(_of(prices, loop, 200).total_cycles - _of(prices, loop, 100).total_cycles, 100)
        else:
            both = sequence(flow.runs[before], flow.runs[after])
            alone = sequence(flow.runs[before])
            step = Fraction(_of(prices, both).total_cycles - _of(prices, alone).total_cycles)
        in_order += count * step
    floor = sum(
        (count * _of(prices, sequence(flow.runs[node])).rthroughput for node, count in flow.executions().items()),
        Fraction(0),
    )
    return Cycles(in_order, floor)


def assembly(sequences: Iterable[Sequence]) -> str:
    """One file for llvm-mca: a region for each sequence, named by its key, in the order of the keys."""
    parts = []
    for one in sorted(sequences, key=lambda s: s.key):
        parts.append(f"# LLVM-MCA-BEGIN {one.key}\n{one.text}# LLVM-MCA-END {one.key}\n")
    return "".join(parts)


def parse_prices(document: str, iterations: int) -> dict[tuple[str, int], Price]:
    """llvm-mca's JSON. Raises RvvbenchError where it is none or not of that many iterations."""
    try:
        regions = json.loads(document)["CodeRegions"]
        summaries = [(str(region["Name"]), region["SummaryView"]) for region in regions]
    except (ValueError, KeyError, TypeError) as error:
        raise RvvbenchError(f"llvm-mca's answer is not what version 22 gives: {error}") from error
    prices = {}
    for name, summary in summaries:
        if summary["Iterations"] != iterations:
            raise RvvbenchError(f"llvm-mca priced {summary['Iterations']} iterations, not {iterations}")
        # Quarters and thirds come as decimal numbers; the nearest simple fraction is what was meant.
        rthroughput = Fraction(summary["BlockRThroughput"]).limit_denominator(1000)
        prices[name, iterations] = Price(int(summary["TotalCycles"]), rthroughput)
    return prices


def _in_force(kind: VectorType | None) -> list[str]:
    if kind is None:
        return []
    return [f"# LLVM-MCA-RISCV-LMUL {kind.lmul.upper()}", f"# LLVM-MCA-RISCV-SEW E{kind.sew_bits}"]


def _of(prices: Prices, one: Sequence, iterations: int = 1) -> Price:
    price = prices.get((one.key, iterations))
    if price is None:
        raise RvvbenchError(f"llvm-mca gave no price for a sequence of {one.text.count(chr(10))} lines")
    return price
