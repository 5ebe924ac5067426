"""The result of `rvvbench kernels model` as data: one document, equal to the digit at every run of equal inputs."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA: Literal["rvvbench/kernel-model/1"] = "rvvbench/kernel-model/1"
COMPARISON_SCHEMA: Literal["rvvbench/kernel-library-model/1"] = "rvvbench/kernel-library-model/1"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Share(_Part):
    """The whole chip at one bandwidth; see roofline.py."""

    bandwidth_bytes_per_s: int
    modelled_s: float
    share: float
    bound: str


class Modelled(_Part):
    """Counts and prices of one core doing the whole call, data in L1.

    `l1_loaded_bytes` and `l1_stored_bytes` are what executed loads and stores ask of the first-level cache, an upper
    bound where vl is below VLMAX. `counted_units` are the sizes that were executed; more than one: scaled exactly.
    Linears and attention are rated by multiply-adds per cycle, elementwise operators by cycles per element written.
    """

    kernel: str
    counted_units: list[int]
    instructions: int
    vector_instructions: int
    l1_loaded_bytes: int
    l1_stored_bytes: int
    cycles_in_order: float
    cycles_floor: float
    macs_per_cycle: float | None
    macs_per_cycle_floor: float | None
    peak_share: float | None
    cycles_per_element: float | None
    cycles_per_element_floor: float | None
    roofline: list[Share]


class Row(_Part):
    """One case. `modelled` is null where `reason` says why."""

    operation: str
    type: str
    model: str
    layer: str
    sizes: dict[str, int]
    case: str
    macs: int
    elements: int
    moved_bytes: int
    modelled: Modelled | None
    reason: str | None


class Tools(_Part):
    """What counted and priced."""

    llvm: str
    qemu: str
    cpu: str
    priced_as: str
    toolchain_digest: str
    program_sha256: str


class StepRow(_Part):
    """A whole step of a model on 8 cores: the sum over its operators, see step.py.

    `cycles` is that of the core that is busy longest. In `tokens_per_s`, by bandwidth in bytes per second, an operator
    takes the longer of its cycles at 1.6 GHz and its bytes at the bandwidth.
    """

    model: str
    precision: str
    phase: str
    tokens: int
    cycles: float
    moved_bytes: int
    tokens_per_s: dict[str, float]


class Report(_Part):
    """All cases, which kernels of the registry they reached, and the steps of which every operator is a case."""

    schema_: Literal["rvvbench/kernel-model/1"] = Field(default=SCHEMA, alias="schema")
    tools: Tools
    kernels_modelled: list[str]
    kernels_not_reached: list[str]
    rows: list[Row]
    steps: list[StepRow]


class LibraryRows(_Part):
    """One library's cases. Only its own code is counted, its operators' checks and dispatch with it."""

    name: str
    sha256: str
    rows: list[Row]


class Comparison(_Part):
    """The same cases of our library and another, each called by torch on one thread. The program of `tools` is ours."""

    schema_: Literal["rvvbench/kernel-library-model/1"] = Field(default=COMPARISON_SCHEMA, alias="schema")
    tools: Tools
    ours: LibraryRows
    other: LibraryRows
