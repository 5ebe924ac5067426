"""What a measured process is told (`rvvbench/spec/1`), and what a record expects of it: the part that every kind of
workload has. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rvvbench.manifest.models import Eval, Variant
from rvvbench.manifest.resolve import Resolved
from rvvbench.manifest.routing import Route
from rvvbench.provide.prompt import seeded_token_ids, special_ids
from rvvbench.record.schema import Heading
from rvvbench.record.schema import Route as RecordRoute
from rvvbench.target.select import Target, environment

EVENTS_NAME = "events.jsonl"
MODEL_PATH = "/rvvbench/model"

POOL_TOKENS = 4096
"""Least size of the KV pool, in tokens. SGLang sizes its pools from free memory unless told, which would make peak
memory a property of the machine: on the CPU it zeroes, and so touches, every page of them."""


@dataclass(frozen=True)
class Pins:
    """Hashes that provisioning has verified outside; the process proves them again inside."""

    checkpoint_files: Mapping[str, str]
    kernels_sha256: str | None

    def kernels_of(self, variant: Variant) -> str | None:
        """Hash of the kernel library that `variant` must load; None where it uses none."""
        return self.kernels_sha256 if variant.uses_kernels else None


@dataclass(frozen=True)
class Identity:
    """Which process of which run: `row` names what it is measured for."""

    run_id: str
    row: str
    process_index: int


def expected_of_process(
    resolved: Resolved, target: Target, variant: Variant, pins: Pins, routes: Iterable[Route]
) -> dict[str, Any]:
    """The fields of `Expected` that do not depend on the kind of workload, besides those of shape and server."""
    return {
        "processes": resolved.experiment.fresh_processes,
        "input_len": resolved.experiment.workload.input_len,
        "output_len": resolved.experiment.workload.output_len,
        "threads": resolved.board.threads,
        "emulated": target.emulated,
        "machine": target.machine,
        "vlen_bits": resolved.board.vlen,
        "packages": dict(resolved.stack.packages),
        "checkpoint_files": dict(pins.checkpoint_files),
        "kernels_sha256": pins.kernels_of(variant),
        "routing": tuple(
            RecordRoute(projection=r.projection, m=r.m, path=r.path, calls=r.calls, reason=r.reason) for r in routes
        ),
        "kernel_suffix": kernel_suffix(resolved) if variant.uses_kernels else None,
        "environment": variant_environment(resolved, target, variant),
    }


def kernel_suffix(resolved: Resolved) -> str:
    """How the names of the kernels end that must run: by whether the board declares vectors."""
    return "_portable" if resolved.board.vlen is None else "_rvv"


def variant_environment(resolved: Resolved, target: Target, variant: Variant) -> dict[str, str]:
    """Environment of a process: the board's, and what switches the variant on in the plugin."""
    result = environment(target, resolved.board)
    if variant.linear == "packed":
        result["SGLANG_RVV_LINEAR"] = "packed"
        result["SGLANG_RVV_PROJECTIONS"] = ",".join(variant.projections)
    return result


def heading_of(resolved: Resolved, **of_its_kind: Any) -> Heading:
    """What every table of the record says above itself; `of_its_kind` are the fields that the workload decides."""
    experiment = resolved.experiment
    return Heading(
        model=resolved.model.title,
        weights=experiment.weights,
        input_len=experiment.workload.input_len,
        output_len=experiment.workload.output_len,
        dtype=experiment.dtype,
        tensor_parallel=experiment.tensor_parallel,
        **of_its_kind,
    )


def seeded_prompts(resolved: Resolved, first: int, count: int) -> list[list[int]]:
    """Prompts `first` to `first + count - 1` of the workload's seed: [count, input_len] token ids."""
    workload, config = resolved.experiment.workload, resolved.model.config
    assert not isinstance(workload, Eval)  # asks in words
    vocabulary, barred = int(config["vocab_size"]), special_ids(config)
    return [
        seeded_token_ids(workload.seed, first + index, workload.input_len, vocabulary, barred) for index in range(count)
    ]


def declared_server_args(resolved: Resolved, variant: Variant) -> dict[str, Any]:
    """Fields of ServerArgs that the rest of the manifest declares, whatever the variant's `server_args` say."""
    return {
        "model_path": MODEL_PATH,
        "device": "cpu",
        "dtype": resolved.experiment.dtype,
        "tp_size": resolved.experiment.tensor_parallel,
        "attention_backend": variant.attention_backend,
    }


def process_spec(
    kind: str, resolved: Resolved, target: Target, variant: Variant, pins: Pins, identity: Identity
) -> dict[str, Any]:
    """The fields of a spec that every kind has, as JSON data."""
    experiment = resolved.experiment
    return {
        "schema": "rvvbench/spec/1",
        "kind": kind,
        "run_id": identity.run_id,
        "row": identity.row,
        "process_index": identity.process_index,
        "model_path": MODEL_PATH,
        "dtype": experiment.dtype,
        "tensor_parallel": experiment.tensor_parallel,
        "output_len": experiment.workload.output_len,
        "threads": resolved.board.threads,
        "variant": {
            "name": variant.name,
            "attention_backend": variant.attention_backend,
            "linear": variant.linear,
            "projections": list(variant.projections),
            "compile": variant.compile,
            "server_args": dict(variant.server_args),
        },
        "expect": {
            "machine": target.machine,
            "packages": dict(resolved.stack.packages),
            "checkpoint_files": dict(pins.checkpoint_files),
            "kernels_sha256": pins.kernels_of(variant),
            "vlen": resolved.board.vlen,
        },
        "emulated": target.emulated,
        "sample_interval_s": experiment.sample_interval_s,
        "events_path": f"/rvvbench/out/{EVENTS_NAME}",
    }
