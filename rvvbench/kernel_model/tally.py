"""What a flow executed: instructions by kind, and bytes asked of the first-level cache."""

from __future__ import annotations

from dataclasses import dataclass

from rvvbench.kernel_model.flow import Flow, Run
from rvvbench.kernel_model.memory_access import access
from rvvbench.kernel_model.vector_type import sets_vector_type, uses_vector_type, vector_type_of


@dataclass(frozen=True)
class Tally:
    """Sums over all executions. Bytes are upper bounds where vl is below VLMAX."""

    instructions: int = 0
    vector_instructions: int = 0
    vector_settings: int = 0
    loaded_bytes: int = 0
    stored_bytes: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.instructions + other.instructions,
            self.vector_instructions + other.vector_instructions,
            self.vector_settings + other.vector_settings,
            self.loaded_bytes + other.loaded_bytes,
            self.stored_bytes + other.stored_bytes,
        )

    def __mul__(self, times: int) -> Tally:
        return Tally(
            self.instructions * times,
            self.vector_instructions * times,
            self.vector_settings * times,
            self.loaded_bytes * times,
            self.stored_bytes * times,
        )


def tally(flow: Flow, vlen_bits: int) -> Tally:
    """The sums of `flow`."""
    total = Tally()
    for node, count in flow.executions().items():
        total += _of_run(flow.runs[node], vlen_bits) * count
    return total


def _of_run(run: Run, vlen_bits: int) -> Tally:
    total = Tally()
    kind = run.vector_type
    for instruction in run.instructions:
        moved = access(instruction.text, kind, vlen_bits)
        total += Tally(
            1,
            int(uses_vector_type(instruction.text)),
            int(sets_vector_type(instruction.text)),
            moved.loaded_bytes,
            moved.stored_bytes,
        )
        if sets_vector_type(instruction.text):
            kind = vector_type_of(instruction.text)
    return total
