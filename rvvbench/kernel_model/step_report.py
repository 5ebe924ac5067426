"""The result of `rvvbench kernels step` as data: one document, equal to the digit at every run of equal inputs."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA: Literal["rvvbench/kernel-step/1"] = "rvvbench/kernel-step/1"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class CountedGroup(_Part):
    """Instructions of one step that a group of operators executes, by the name of the library that has them."""

    group: str
    instructions: int
    by_library: dict[str, int]


class CountedWay(_Part):
    """One way to compute the step.

    `difference` is how far its logits are from those of the first way (norm of the difference over the norm), so that
    the counts are of the same work. `unsteady_instructions` is what the first steps that were counted executed more
    than the next ones: 0 where every step does the same.
    """

    way: str
    difference: float
    instructions: int
    unsteady_instructions: int
    groups: list[CountedGroup]


class CountedStep(_Part):
    """One token of one sequence of `context` tokens, the token with them. `layers` of `layers_of_model` are counted."""

    model: str
    layers: int
    layers_of_model: int
    context: int
    ways: list[CountedWay]


class StepTools(_Part):
    """What counted what."""

    qemu: str
    cpu: str
    runtime_digest: str
    library_sha256: str


class StepReport(_Part):
    """All steps. Of each the first way is the one that the others are held against.

    `libraries` are those whose code was counted, `steps_counted` is N: what is given is the difference of 2 N and N
    steps, divided by N.
    """

    schema_: Literal["rvvbench/kernel-step/1"] = Field(default=SCHEMA, alias="schema")
    tools: StepTools
    libraries: list[str]
    steps_counted: int
    steps: list[CountedStep]
