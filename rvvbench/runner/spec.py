"""The spec (`rvvbench/spec/1`) as this side reads it. Strict where a wrong value would be measured, silent about what
it does not know.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .failure import SpecError

SCHEMA = "rvvbench/spec/1"


@dataclass(frozen=True)
class Variant:
    """What a row compares. `server_args` are further fields of SGLang's ServerArgs. `memory_budget_mib` bounds packed
    weights; None: nothing does but the memory there is.
    """

    name: str
    attention_backend: str
    linear: str
    projections: tuple[str, ...]
    elementwise: str
    kv_cache_dtype: str
    memory_budget_mib: float | None
    compile: str
    packed_weight_mode: str | None
    small_batch: bool
    server_args: Mapping[str, Any]

    @property
    def uses_kernels(self) -> bool:
        """Whether the kernel library must be loaded and attested."""
        others = self.attention_backend == "rvv" or self.elementwise == "kernels"
        return self.linear != "torch" or others or self.packed_weight_mode == "explicit"

    @property
    def compiles(self) -> bool:
        """Whether regions of the model are compiled."""
        return self.compile != "none"

    @property
    def compile_args(self) -> dict[str, Any]:
        """The fields of ServerArgs that say so, as short as it can be said."""
        if not self.compiles:
            return {}
        mode = {"cpu_rvv_packed_weight_mode": self.packed_weight_mode}
        if self.small_batch:
            return {"enable_cpu_rvv_inductor": True, **(mode if self.packed_weight_mode == "off" else {})}
        return {"cpu_compile_mode": self.compile, **mode}


@dataclass(frozen=True)
class Expect:
    """What must be found before anything is measured. `kernels_sha256` and `vlen` None: not expected, not checked."""

    machine: str
    packages: Mapping[str, str]
    checkpoint_files: Mapping[str, str]
    kernels_sha256: str | None
    vlen: int | None


@dataclass(frozen=True)
class Common:
    """What every kind of spec says."""

    kind: str
    run_id: str
    row: str
    process_index: int
    model_path: str
    dtype: str
    tensor_parallel: int
    output_len: int
    threads: int
    variant: Variant
    expect: Expect
    sample_interval_s: float
    events_path: str


@dataclass(frozen=True)
class Spec(Common):
    """One measured process. `input_ids` and `warmup_input_ids` are [batch_size][input_len]."""

    batch_size: int
    input_ids: tuple[tuple[int, ...], ...]
    warmup_input_ids: tuple[tuple[int, ...], ...]

    @property
    def input_tokens(self) -> int:
        """Prompt tokens of the whole batch."""
        return sum(len(prompt) for prompt in self.input_ids)


Parsed = TypeVar("Parsed")


def load(path: str) -> Spec:
    """Read a one-batch spec file. Raises SpecError when it cannot be read or is not what docs/architecture.md says."""
    return read(path, parse)


def read(path: str, parse_document: Callable[[Mapping[str, Any]], Parsed]) -> Parsed:
    """Read a spec file by the parser of its kind; raises as `load`."""
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(f"cannot read the spec {path}: {error}") from error
    try:
        return parse_document(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SpecError(f"the spec {path} lacks a field or has a wrong one: {type(error).__name__} {error}") from error


def parse(document: Mapping[str, Any]) -> Spec:
    """A Spec from its JSON document. Raises SpecError (meaning), KeyError, TypeError or ValueError (form)."""
    spec = Spec(
        **common(document),
        batch_size=int(document["batch_size"]),
        input_ids=_prompts(document["input_ids"]),
        warmup_input_ids=_prompts(document["warmup_input_ids"]),
    )
    problems = [*problems_of(spec, "one-batch"), *_shape_problems(spec)]
    if problems:
        raise SpecError("; ".join(problems))
    return spec


def common(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `Common`. Raises as `parse`."""
    if document["schema"] != SCHEMA:
        raise SpecError(f"the spec's schema is {document['schema']!r}; this runner reads {SCHEMA}")
    variant, expect = document["variant"], document["expect"]
    return {
        "kind": str(document["kind"]),
        "run_id": str(document["run_id"]),
        "row": str(document["row"]),
        "process_index": int(document["process_index"]),
        "model_path": str(document["model_path"]),
        "dtype": str(document["dtype"]),
        "tensor_parallel": int(document["tensor_parallel"]),
        "output_len": int(document["output_len"]),
        "threads": int(document["threads"]),
        "variant": Variant(
            name=str(variant["name"]),
            attention_backend=str(variant["attention_backend"]),
            linear=str(variant["linear"]),
            projections=tuple(variant.get("projections") or ()),
            elementwise=str(variant.get("elementwise", "torch")),
            kv_cache_dtype=str(variant.get("kv_cache_dtype", "auto")),
            memory_budget_mib=_number(variant.get("memory_budget_mib")),
            compile=str(variant.get("compile", "none")),
            packed_weight_mode=variant.get("packed_weight_mode"),
            small_batch=bool(variant.get("small_batch")),
            server_args=dict(variant.get("server_args") or {}),
        ),
        "expect": Expect(
            machine=str(expect["machine"]),
            packages=dict(expect["packages"]),
            checkpoint_files=dict(expect["checkpoint_files"]),
            kernels_sha256=expect["kernels_sha256"],
            vlen=None if expect["vlen"] is None else int(expect["vlen"]),
        ),
        "sample_interval_s": float(document["sample_interval_s"]),
        "events_path": str(document["events_path"]),
    }


def problems_of(spec: Common, kind: str) -> Iterator[str]:
    """What this runner cannot do, whatever the kind."""
    if spec.kind != kind:
        yield f"kind {spec.kind!r} is not {kind}"
    if spec.tensor_parallel != 1:
        yield f"tensor_parallel {spec.tensor_parallel}: one process measures one rank"
    variant = spec.variant
    for name, value, known in (
        ("attention_backend", variant.attention_backend, ("torch_native", "rvv")),
        ("linear", variant.linear, ("torch", "packed", "w8a8")),
        ("elementwise", variant.elementwise, ("torch", "kernels")),
        ("kv_cache_dtype", variant.kv_cache_dtype, ("auto", "int8")),
        ("compile", variant.compile, ("none", "regional")),
    ):
        if value not in known:
            yield f"{name} {value!r} is not one of {', '.join(known)}"
    if variant.linear in ("packed", "w8a8") and not variant.projections:
        yield f"linear {variant.linear} needs projections"
    if variant.uses_kernels and not spec.expect.kernels_sha256:
        yield "a variant that uses kernels needs expect.kernels_sha256"
    if variant.compiles and variant.packed_weight_mode not in ("explicit", "off"):
        yield f"packed_weight_mode {variant.packed_weight_mode!r} is not one of explicit, off"
    if variant.compiles and variant.linear != "torch":
        yield f"compile {variant.compile} is of linears that are left to torch, not of linear {variant.linear}"
    if spec.output_len < 1 or spec.sample_interval_s <= 0 or spec.threads < 1:
        yield "output_len, threads and sample_interval_s must be positive"


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def _prompts(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(prompt(ids) for ids in value)


def prompt(value: Any) -> tuple[int, ...]:
    """Token ids."""
    return tuple(int(token) for token in value)


def _shape_problems(spec: Spec) -> Iterator[str]:
    shape = [len(ids) for ids in spec.input_ids]
    if len(shape) != spec.batch_size or not all(shape):
        yield f"input_ids hold {len(shape)} prompts for batch_size {spec.batch_size}, or an empty one"
    if [len(ids) for ids in spec.warmup_input_ids] != shape:
        yield "warmup_input_ids must have the shape of input_ids"
    if any(warm == measured for warm, measured in zip(spec.warmup_input_ids, spec.input_ids, strict=False)):
        yield "a warm-up prompt equals the measured one: its result would be measured, not its computation"
