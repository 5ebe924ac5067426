from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.models import Model, OneBatch, Variant
from rvvbench.manifest.routing import predicted_routes
from rvvbench.manifest.shapes import packed_bytes, projection_shapes


def config(manifests: Path, name: str) -> dict[str, object]:
    return load_manifest(manifests, "models", name, Model)[0].config


def test_the_five_projections_of_llama_pack_to_the_published_size(manifests: Path) -> None:
    assert packed_bytes(config(manifests, "llama-3.2-1b")) == 2_471_493_632


def test_columns_are_padded_to_32(manifests: Path) -> None:
    odd = {**config(manifests, "llama-3.2-1b"), "vocab_size": 33}
    head = projection_shapes(odd)[-1]
    assert (head.n, head.packed_bytes) == (33, 64 * 2048 * 2)


@pytest.mark.parametrize(("name", "bias"), [("qwen2.5-1.5b-instruct", True), ("qwen3-0.6b", False)])
def test_only_qwen2_has_biased_qkv(manifests: Path, name: str, bias: bool) -> None:
    assert projection_shapes(config(manifests, name))[0].bias is bias


def test_routes_of_one_batch(manifests: Path) -> None:
    variant = Variant.model_validate(
        {
            "schema": "rvvbench/variant/1",
            "name": "v",
            "title": "v",
            "attention_backend": "torch_native",
            "linear": "packed",
            "projections": ["qkv_proj", "lm_head"],
        }
    )
    workload = OneBatch(kind="one-batch", batch_size=2, input_len=64, output_len=8, seed=0)
    routes = {
        (r.projection, r.m): (r.path, r.calls)
        for r in predicted_routes(config(manifests, "llama-3.2-1b"), variant, workload)
    }
    assert routes[("qkv_proj", 128)] == ("packed", 16)
    assert routes[("qkv_proj", 2)] == ("packed", 16 * 7)
    assert routes[("o_proj", 2)] == ("torch", 16 * 7)
    assert routes[("lm_head", 2)] == ("packed", 8)
    assert sum(calls for _, calls in routes.values()) == (4 * 16 + 1) * 8
