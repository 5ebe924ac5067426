"""A spec as the harness writes it; every test changes what it is about."""

from __future__ import annotations

import copy
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
