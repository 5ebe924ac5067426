"""The spec (`rvvbench/spec/1`) as this side reads it. Strict where a wrong value would be measured, silent about what
it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .failure import SpecError

SCHEMA = "rvvbench/spec/1"


@dataclass(frozen=True)
class Variant:
    """What a row compares. `server_args` are further fields of SGLang's ServerArgs."""

    name: str
    attention_backend: str
    linear: str
    projections: tuple[str, ...]
    compile: str
    server_args: Mapping[str, Any]


@dataclass(frozen=True)
class Expect:
    """What must be found before anything is measured. `kernels_sha256` and `vlen` None: not expected, not checked."""

    machine: str
    packages: Mapping[str, str]
    checkpoint_files: Mapping[str, str]
    kernels_sha256: str | None
    vlen: int | None


@dataclass(frozen=True)
class Spec:
    """One measured process. `input_ids` and `warmup_input_ids` are [batch_size][input_len]."""

    kind: str
    run_id: str
    row: str
    process_index: int
    model_path: str
    dtype: str
    tensor_parallel: int
    batch_size: int
    output_len: int
    input_ids: tuple[tuple[int, ...], ...]
    warmup_input_ids: tuple[tuple[int, ...], ...]
    threads: int
    variant: Variant
    expect: Expect
    sample_interval_s: float
    events_path: str

    @property
    def input_tokens(self) -> int:
        """Prompt tokens of the whole batch."""
        return sum(len(prompt) for prompt in self.input_ids)


def load(path: str) -> Spec:
    """Read a spec file. Raises SpecError when it cannot be read or is not what docs/architecture.md says."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot read the spec {path}: {error}") from error
    try:
        return parse(document)
    except (KeyError, TypeError, ValueError) as error:
        raise SpecError(f"the spec {path} lacks a field or has a wrong one: {type(error).__name__} {error}") from error


def parse(document: Mapping[str, Any]) -> Spec:
    """A Spec from its JSON document. Raises SpecError (meaning), KeyError, TypeError or ValueError (form)."""
    if document["schema"] != SCHEMA:
        raise SpecError(f"the spec's schema is {document['schema']!r}; this runner reads {SCHEMA}")
    variant, expect = document["variant"], document["expect"]
    spec = Spec(
        kind=str(document["kind"]),
        run_id=str(document["run_id"]),
        row=str(document["row"]),
        process_index=int(document["process_index"]),
        model_path=str(document["model_path"]),
        dtype=str(document["dtype"]),
        tensor_parallel=int(document["tensor_parallel"]),
        batch_size=int(document["batch_size"]),
        output_len=int(document["output_len"]),
        input_ids=_prompts(document["input_ids"]),
        warmup_input_ids=_prompts(document["warmup_input_ids"]),
        threads=int(document["threads"]),
        variant=Variant(
            name=str(variant["name"]),
            attention_backend=str(variant["attention_backend"]),
            linear=str(variant["linear"]),
            projections=tuple(variant.get("projections") or ()),
            compile=str(variant.get("compile", "none")),
            server_args=dict(variant.get("server_args") or {}),
        ),
        expect=Expect(
            machine=str(expect["machine"]),
            packages=dict(expect["packages"]),
            checkpoint_files=dict(expect["checkpoint_files"]),
            kernels_sha256=expect["kernels_sha256"],
            vlen=None if expect["vlen"] is None else int(expect["vlen"]),
        ),
        sample_interval_s=float(document["sample_interval_s"]),
        events_path=str(document["events_path"]),
    )
    _check(spec)
    return spec


def _prompts(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(token) for token in prompt) for prompt in value)


def _check(spec: Spec) -> None:
    problems = []
    if spec.kind != "one-batch":
        problems.append(f"kind {spec.kind!r} is not one-batch")
    if spec.tensor_parallel != 1:
        problems.append(f"tensor_parallel {spec.tensor_parallel}: one process measures one rank")
    if spec.variant.linear not in ("torch", "packed"):
        problems.append(f"linear {spec.variant.linear!r} is not one of torch, packed")
    if spec.variant.linear == "packed" and not (spec.variant.projections and spec.expect.kernels_sha256):
        problems.append("linear packed needs projections and expect.kernels_sha256")
    if spec.variant.compile != "none":
        problems.append(f"compile {spec.variant.compile!r} is not known to this runner")
    if spec.output_len < 1 or spec.sample_interval_s <= 0 or spec.threads < 1:
        problems.append("output_len, threads and sample_interval_s must be positive")
    shape = [len(prompt) for prompt in spec.input_ids]
    if len(shape) != spec.batch_size or not all(shape):
        problems.append(f"input_ids hold {len(shape)} prompts for batch_size {spec.batch_size}, or an empty one")
    if [len(prompt) for prompt in spec.warmup_input_ids] != shape:
        problems.append("warmup_input_ids must have the shape of input_ids")
    if any(warm == measured for warm, measured in zip(spec.warmup_input_ids, spec.input_ids, strict=False)):
        problems.append("a warm-up prompt equals the measured one: its result would be measured, not its computation")
    if problems:
        raise SpecError("; ".join(problems))
