"""Steps between translation blocks as a graph of straight runs of instructions.

The emulator ends a block at every vsetvli, page end and call. Blocks that always follow each other are joined again
here, so that what is priced is what a processor sees as one stretch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.block_log import Node
from rvvbench.kernel_model.program import Instruction, Program
from rvvbench.kernel_model.trace import Step, Trace
from rvvbench.kernel_model.vector_type import VectorType, sets_vector_type, uses_vector_type, vector_type_of

OUTSIDE: Node = -1
"""Whatever is executed outside of the functions that count."""


@dataclass(frozen=True)
class Run:
    """Instructions executed one after the other, entered with `vector_type` in force (None: none, or of no matter)."""

    instructions: tuple[Instruction, ...]
    vector_type: VectorType | None


@dataclass(frozen=True)
class Flow:
    """Runs, and how often one followed another: `steps[a, b]` times; `steps[OUTSIDE, b]` are entries."""

    runs: Mapping[Node, Run]
    steps: Mapping[Step, int]

    def executions(self) -> dict[Node, int]:
        """How often each run was executed."""
        counts: dict[Node, int] = dict.fromkeys(self.runs, 0)
        for (_, to), count in self.steps.items():
            if to != OUTSIDE:
                counts[to] += count
        return counts


def steps_of_case(trace: Trace, case: int, program: Program, counts: Callable[[str], bool]) -> dict[Step, int]:
    """Steps of N calls of case number `case`: the difference of 2 N and N calls, exact.

    What is executed in functions whose name does not count is OUTSIDE. Raises RvvbenchError where the operator does
    not do the same at every call.
    """
    once, twice = (_inside(trace.steps[2 * case + i], trace, program, counts) for i in (0, 1))
    if once.keys() != twice.keys() or any(count < once[step] for step, count in twice.items()):
        raise RvvbenchError(
            "twice as many calls executed other blocks: the operator does not do the same at every call",
            where=f"case number {case}",
        )
    return {step: count - once[step] for step, count in twice.items() if count != once[step]}


def flow_of(steps: Mapping[Step, int], trace: Trace, program: Program) -> Flow:
    """The flow of `steps`.

    Raises RvvbenchError where a vector instruction would have to be priced without its vector type known.
    """
    nodes = sorted({node for step in steps for node in step if node != OUTSIDE})
    code = {node: _code(node, trace, program) for node in nodes}
    types = _vector_types(steps, code)
    return _joined(steps, {node: Run(code[node], types[node]) for node in nodes})


def _inside(
    steps: Mapping[Step, int], trace: Trace, program: Program, counts: Callable[[str], bool]
) -> dict[Step, int]:
    def place(node: Node) -> Node:
        return node if counts(program.function_at(trace.blocks[node].address)) else OUTSIDE

    places = {node: place(node) for step in steps for node in step}
    inside: dict[Step, int] = defaultdict(int)
    for (before, after), count in steps.items():
        step = (places[before], places[after])
        if step != (OUTSIDE, OUTSIDE):
            inside[step] += count
    return dict(inside)


def _code(node: Node, trace: Trace, program: Program) -> tuple[Instruction, ...]:
    start = trace.blocks[node].address
    end = trace.ends.get(start)
    if end is None:
        raise RvvbenchError(f"the emulator executed a block that it did not disassemble: {start:#x}")
    return program.span(start, end)


def _vector_types(
    steps: Mapping[Step, int], code: Mapping[Node, tuple[Instruction, ...]]
) -> dict[Node, VectorType | None]:
    """The vector type at the entry of every block, carried along the steps from the vsetvli that set it."""
    following: dict[Node, list[Node]] = defaultdict(list)
    for before, after in steps:
        if OUTSIDE not in (before, after):
            following[before].append(after)
    sets = {node: [i.text for i in code[node] if sets_vector_type(i.text)] for node in code}
    at_entry: dict[Node, set[VectorType | None]] = {node: set() for node in code}
    leaving: list[tuple[Node, VectorType | None]] = [(n, vector_type_of(s[-1])) for n, s in sets.items() if s]
    while leaving:
        node, kind = leaving.pop()
        for after in following[node]:
            if kind not in at_entry[after]:
                at_entry[after].add(kind)
                if not sets[after]:
                    leaving.append((after, kind))
    return {node: _type_needed(code[node], at_entry[node]) for node in code}


def _type_needed(code: tuple[Instruction, ...], possible: set[VectorType | None]) -> VectorType | None:
    for instruction in code:
        if sets_vector_type(instruction.text):
            break
        if uses_vector_type(instruction.text):
            kinds = {(kind.sew_bits, kind.lmul) for kind in possible if kind is not None}
            if len(kinds) != 1 or None in possible:
                raise RvvbenchError(
                    f"the vector type of {instruction.text!r} is not known ({len(kinds)} are possible)",
                    where=f"address {instruction.address:#x}",
                )
            (sew_bits, lmul) = kinds.pop()
            asked = {kind.avl for kind in possible if kind is not None}
            return VectorType(sew_bits, lmul, asked.pop() if len(asked) == 1 else None)
    known = {kind for kind in possible if kind is not None}
    return known.pop() if len(known) == 1 and None not in possible else None


def _joined(steps: Mapping[Step, int], runs: Mapping[Node, Run]) -> Flow:
    """Joins A and B where B always follows A and nothing else leads to B."""
    after: dict[Node, set[Node]] = defaultdict(set)
    before: dict[Node, set[Node]] = defaultdict(set)
    for source, target in steps:
        after[source].add(target)
        before[target].add(source)

    def follower(node: Node) -> Node | None:
        if len(after[node]) != 1:
            return None
        (only,) = after[node]
        return only if only not in (OUTSIDE, node) and before[only] == {node} else None

    followers = {node: found for node in runs if (found := follower(node)) is not None}
    heads = sorted(runs.keys() - followers.values())
    chains: dict[Node, list[Node]] = {}
    for head in heads:
        chains[head] = [head]
        while (found := followers.get(chains[head][-1])) is not None:
            chains[head].append(found)
    head_of = {chain[-1]: head for head, chain in chains.items()}
    inner = {node for chain in chains.values() for node in chain[1:]}
    joined = {
        head: Run(tuple(i for node in chain for i in runs[node].instructions), _first_type(chain, runs))
        for head, chain in chains.items()
    }
    kept = {
        (head_of[source] if source != OUTSIDE else OUTSIDE, target): count
        for (source, target), count in steps.items()
        if target not in inner
    }
    return Flow(joined, kept)


def _first_type(chain: list[Node], runs: Mapping[Node, Run]) -> VectorType | None:
    """The type at entry that matters: of the first block that needs one, unless one before it sets its own."""
    for node in chain:
        if runs[node].vector_type is not None:
            return runs[node].vector_type
        if any(sets_vector_type(i.text) for i in runs[node].instructions):
            return None
    return None
