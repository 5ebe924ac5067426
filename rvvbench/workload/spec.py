"""What a measured process is told (`rvvbench/spec/1`), and what a record expects of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rvvbench.manifest.models import Experiment, Variant
from rvvbench.manifest.resolve import Resolved
from rvvbench.manifest.routing import predicted_routes
from rvvbench.record.schema import PACKED_LINEAR_OP, Expected, Route
from rvvbench.target.select import Target, environment

EVENTS_NAME = "events.jsonl"
MODEL_PATH = "/rvvbench/model"


@dataclass(frozen=True)
class Prompts:
    """Token ids of the measured batch and of the warm-up batch: [batch, input_len] each, no sequence in common."""

    measured: list[list[int]]
    warmup: list[list[int]]


@dataclass(frozen=True)
class Pins:
    """Hashes that provisioning has verified outside; the process proves them again inside."""

    checkpoint_files: Mapping[str, str]
    kernels_sha256: str | None


def expected(resolved: Resolved, target: Target, variant: Variant, pins: Pins) -> Expected:
    """What every process of the row of `variant` must show."""
    experiment = resolved.experiment
    workload = experiment.workload
    routes = predicted_routes(resolved.model.config, variant, workload)
    packed_calls = sum(route.calls for route in routes if route.path == "packed")
    suffix: Literal["_rvv", "_portable"] = "_portable" if resolved.board.vlen is None else "_rvv"
    return Expected(
        processes=experiment.fresh_processes,
        batch_size=workload.batch_size,
        input_len=workload.input_len,
        output_len=workload.output_len,
        threads=resolved.board.threads,
        emulated=target.emulated,
        machine=target.machine,
        vlen_bits=resolved.board.vlen,
        packages=dict(resolved.stack.packages),
        checkpoint_files=dict(pins.checkpoint_files),
        kernels_sha256=pins.kernels_sha256 if variant.uses_kernels else None,
        routing=tuple(Route(projection=r.projection, m=r.m, path=r.path, calls=r.calls) for r in routes),
        ops={PACKED_LINEAR_OP: packed_calls} if packed_calls else {},
        kernel_suffix=suffix if variant.uses_kernels else None,
        environment=variant_environment(resolved, target, variant),
        server_args=declared_server_args(experiment, variant),
    )


def declared_server_args(experiment: Experiment, variant: Variant) -> dict[str, Any]:
    """What SGLang must have been given.

    The runner lets a variant's own `server_args` come last; here they come first, so that a variant that overrules
    what the record's heading says makes an invalid row and not a false heading.
    """
    return {
        **variant.server_args,
        "model_path": MODEL_PATH,
        "device": "cpu",
        "dtype": experiment.dtype,
        "tp_size": experiment.tensor_parallel,
        "attention_backend": variant.attention_backend,
    }


def variant_environment(resolved: Resolved, target: Target, variant: Variant) -> dict[str, str]:
    """Environment of a process: the board's, and what switches the variant on in the plugin."""
    result = environment(target, resolved.board)
    if variant.linear == "packed":
        result["SGLANG_RVV_LINEAR"] = "packed"
        result["SGLANG_RVV_PROJECTIONS"] = ",".join(variant.projections)
    return result


def one_batch_spec(
    resolved: Resolved,
    target: Target,
    variant: Variant,
    prompts: Prompts,
    pins: Pins,
    *,
    run_id: str,
    row: str,
    process_index: int,
) -> dict[str, Any]:
    """The spec of one fresh process, as JSON data."""
    experiment = resolved.experiment
    want = expected(resolved, target, variant, pins)
    return {
        "schema": "rvvbench/spec/1",
        "kind": "one-batch",
        "run_id": run_id,
        "row": row,
        "process_index": process_index,
        "model_path": MODEL_PATH,
        "dtype": experiment.dtype,
        "tensor_parallel": experiment.tensor_parallel,
        "batch_size": experiment.workload.batch_size,
        "output_len": experiment.workload.output_len,
        "input_ids": _plain(prompts.measured),
        "warmup_input_ids": _plain(prompts.warmup),
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
            "machine": want.machine,
            "packages": want.packages,
            "checkpoint_files": want.checkpoint_files,
            "kernels_sha256": want.kernels_sha256,
            "vlen": want.vlen_bits,
        },
        "emulated": target.emulated,
        "sample_interval_s": experiment.sample_interval_s,
        "events_path": f"/rvvbench/out/{EVENTS_NAME}",
    }


def _plain(batches: Sequence[Sequence[int]]) -> list[list[int]]:
    return [list(ids) for ids in batches]
