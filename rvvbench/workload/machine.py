"""This machine, as far as choosing a target needs it."""

from __future__ import annotations

from rvvbench.observe.machine import machine_facts
from rvvbench.target.select import Target, select


def select_target(choice: str) -> Target:
    """The target that `choice` means here; raises as `select` does."""
    facts = machine_facts()
    return select(choice, machine=str(facts["arch"]), has_vector=bool(facts["vector"]))
