"""What a measured process is told (`rvvbench/spec/1`), and what a record expects of it: the part that every kind of
workload has. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rvvbench.cache.compiler import WRAPPER
from rvvbench.manifest.models import Eval, Variant
from rvvbench.manifest.packing import packing
from rvvbench.manifest.resolve import Resolved
from rvvbench.manifest.routing import Route
from rvvbench.provide.prompt import seeded_token_ids, special_ids
from rvvbench.record.schema import Accuracy, Heading
from rvvbench.record.schema import Route as RecordRoute
from rvvbench.target.select import Target, environment

EVENTS_NAME = "events.jsonl"
MODEL_PATH = "/rvvbench/model"
CACHE_PATH = "/rvvbench/cache"

COMPILE_VARIABLES = {
    "CXX": WRAPPER,
    "TORCHINDUCTOR_CACHE_DIR": CACHE_PATH,
    # Else they lie beside the cache, where nobody looks, and a warm process makes them again.
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    # The compiler is not asked at every start whether it can do what /proc/cpuinfo says.
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
}
"""Environment of every process that compiles."""

POOL_TOKENS = 4096
"""Least size of the KV pool, in tokens. SGLang sizes its pools from free memory unless told, which would make peak
memory a property of the machine: on the CPU it zeroes, and so touches, every page of them."""


@dataclass(frozen=True)
class Pins:
    """Hashes that provisioning has verified outside; the process proves them again inside.

    `w8a8_files` are those of the quantised checkpoint, None where no variant computes with it.
    """

    checkpoint_files: Mapping[str, str]
    kernels_sha256: str | None
    w8a8_files: Mapping[str, str] | None = None

    def checkpoint_of(self, variant: Variant) -> dict[str, str]:
        """File -> sha256 of the checkpoint that `variant` loads."""
        if variant.linear != "w8a8":
            return dict(self.checkpoint_files)
        if self.w8a8_files is None:
            raise ValueError(f"{variant.name} needs the quantised checkpoint, which was not provided")
        return dict(self.w8a8_files)

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
        "checkpoint_files": pins.checkpoint_of(variant),
        "kernels_sha256": pins.kernels_of(variant),
        "routing": tuple(
            RecordRoute(
                projection=r.projection,
                m=r.m,
                path=r.path,
                calls=r.calls,
                reason=r.reason,
                modules=r.modules,
                bucket=r.bucket,
            )
            for r in routes
        ),
        "kernel_suffix": kernel_suffix(resolved) if variant.uses_kernels else None,
        "environment": variant_environment(resolved, target, variant),
        "compiles": variant.compiles,
        "accuracy": None if variant.accuracy is None else Accuracy(**variant.accuracy.model_dump()),
    }


def kernel_suffix(resolved: Resolved) -> str:
    """How the names of the kernels end that must run: by whether the board declares vectors."""
    return "_portable" if resolved.board.vlen is None else "_rvv"


def variant_environment(resolved: Resolved, target: Target, variant: Variant) -> dict[str, str]:
    """Environment of a process: the board's, and what switches the variant on in the plugin.

    To the plugin W8A8 is packed too: the checkpoint's own configuration says which of its linears are INT8.
    """
    return {
        **environment(target, resolved.board),
        "SGLANG_RVV_LINEAR": "torch" if variant.linear == "torch" else "packed",
        "SGLANG_RVV_PROJECTIONS": ",".join(variant.projections),
        "SGLANG_RVV_ELEMENTWISE": variant.elementwise,
        **(COMPILE_VARIABLES if variant.compiles else {}),
    }


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
    budget_mib = packing(resolved.model.config, variant).budget_mib
    return {
        "model_path": MODEL_PATH,
        "device": "cpu",
        "dtype": resolved.experiment.dtype,
        "tp_size": resolved.experiment.tensor_parallel,
        "attention_backend": variant.attention_backend,
        **({"kv_cache_dtype": "int8"} if variant.kv_cache_dtype == "int8" else {}),
        **({"quantization": "w8a8_int8"} if variant.linear == "w8a8" else {}),
        **({"cpu_rvv_memory_budget_mib": budget_mib} if budget_mib is not None else {}),
        **compile_args(variant),
    }


def compile_args(variant: Variant) -> dict[str, Any]:
    """The fields of ServerArgs, which the plugin adds, that make `variant` compile; as short as it can be said."""
    if not variant.compiles:
        return {}
    if variant.small_batch:
        off = {"cpu_rvv_packed_weight_mode": "off"} if variant.packed_weight_mode == "off" else {}
        return {"enable_cpu_rvv_inductor": True, **off}
    return {"cpu_compile_mode": variant.compile, "cpu_rvv_packed_weight_mode": variant.packed_weight_mode}


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
            "elementwise": variant.elementwise,
            "kv_cache_dtype": variant.kv_cache_dtype,
            "memory_budget_mib": packing(resolved.model.config, variant).budget_mib,
            "compile": variant.compile,
            "packed_weight_mode": variant.packed_weight_mode,
            "small_batch": variant.small_batch,
            "server_args": dict(variant.server_args),
        },
        "expect": {
            "machine": target.machine,
            "packages": dict(resolved.stack.packages),
            "checkpoint_files": pins.checkpoint_of(variant),
            "kernels_sha256": pins.kernels_of(variant),
            "vlen": resolved.board.vlen,
        },
        "emulated": target.emulated,
        "sample_interval_s": experiment.sample_interval_s,
        "events_path": f"/rvvbench/out/{EVENTS_NAME}",
    }
