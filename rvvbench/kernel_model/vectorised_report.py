"""The result of `rvvbench kernels vec` as data: one document, equal to the digit at every run of equal inputs."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA: Literal["rvvbench/vectorised/1"] = "rvvbench/vectorised/1"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Executed(_Part):
    """Instructions of one call; `vector_instructions` of them need the vector unit."""

    instructions: int
    vector_instructions: int


class CountedGraph(_Part):
    """One graph, compiled from torch's scalar code and from what is generated for VecRVV. `shapes` of its arguments."""

    graph: str
    shapes: str
    scalar: Executed
    rvv: Executed

    @property
    def fewer(self) -> float:
        """How many times fewer instructions VecRVV's code executes."""
        return self.scalar.instructions / self.rvv.instructions


class VectorisedTools(_Part):
    """What generated, compiled and counted. `sources` is `rvv_inductor`'s digest of its headers and modules."""

    torch: str
    compiler: str
    qemu: str
    cpu: str
    toolchain_digest: str
    sources: str


class VectorisedReport(_Part):
    """All graphs."""

    schema_: Literal["rvvbench/vectorised/1"] = Field(default=SCHEMA, alias="schema")
    tools: VectorisedTools
    calls_counted: int
    graphs: list[CountedGraph]
