"""A spec as the harness writes it; every test changes what it is about."""

from __future__ import annotations

import copy
import os
from typing import Any

import pytest

DOCUMENT: dict[str, Any] = {
    "schema": "rvvbench/spec/1",
    "kind": "one-batch",
    "run_id": "20261130T221500Z-llama-one-batch-1a2b3c",
    "row": "torch-native/none",
    "process_index": 0,
    "model_path": "/rvvbench/model",
    "dtype": "bfloat16",
    "tensor_parallel": 1,
    "batch_size": 1,
    "output_len": 8,
    "input_ids": [[1, 2, 3]],
    "warmup_input_ids": [[4, 5, 6]],
    "threads": 1,
    "variant": {
        "name": "torch-native",
        "attention_backend": "torch_native",
        "linear": "torch",
        "projections": [],
        "elementwise": "torch",
        "kv_cache_dtype": "auto",
        "memory_budget_mib": None,
        "compile": "none",
        "server_args": {},
    },
    "expect": {
        "machine": "riscv64",
        "packages": {"torch": "2.14.1"},
        "checkpoint_files": {},
        "kernels_sha256": None,
        "vlen": 256,
    },
    "sample_interval_s": 0.25,
    "events_path": "/rvvbench/out/events.jsonl",
}


@pytest.fixture
def document() -> dict[str, Any]:
    return copy.deepcopy(DOCUMENT)


@pytest.fixture
def serving_document(document: dict[str, Any]) -> dict[str, Any]:
    """The spec of a short serving run on this machine, without pins."""
    for name in ("batch_size", "input_ids", "warmup_input_ids"):
        del document[name]

    def load(name: str, measured: bool, prompts: list[list[int]]) -> dict[str, Any]:
        requests = [{"id": f"{name}-{index}", "input_ids": ids} for index, ids in enumerate(prompts)]
        closed = {"mode": "closed", "concurrency": 1, "arrivals": None, "rate_per_s": None, "seed": None}
        return {"name": name, "measured": measured, **closed, "requests": requests}

    document["expect"].update(machine=os.uname().machine, packages={}, vlen=None)
    return {
        **document,
        "kind": "serving",
        "row": "torch-native/none",
        "output_len": 3,
        "sample_interval_s": 0.05,
        "server_args": {
            "dtype": "bfloat16",
            "random_seed": 0,
            "disable_radix_cache": True,
            "absent": None,
            "off": False,
        },
        "port": None,
        "loads": [load("c1-warmup", False, [[5, 6, 7, 8]]), load("c1", True, [[1, 2, 3, 4], [4, 3, 2, 1]])],
        "timeouts_s": {"startup": 10, "compile": 10, "request": 10, "shutdown": 5},
        "cross_check": None,
    }
