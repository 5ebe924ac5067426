from __future__ import annotations

from pathlib import Path

import pytest

from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.models import Model
from rvvbench.manifest.shapes import Layers, layers_of, packed_bytes, projection_shapes


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


def test_only_qwen3_normalises_queries_and_keys(manifests: Path) -> None:
    found = [layers_of(config(manifests, name)) for name in ("llama-mini", "qwen2-mini", "qwen3-mini")]
    assert found == [Layers(2, 16, 4, False), Layers(2, 8, 2, False), Layers(2, 8, 4, True)]
