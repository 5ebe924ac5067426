"""What `verify` derives of compiled regions from a plain manifest is what the routing table predicts."""

from __future__ import annotations

from typing import Any

import pytest

from rvvbench import project
from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.models import Model, Variant
from rvvbench.manifest.packing import packing
from rvvbench.manifest.regional import PATHS, mode_of, region
from rvvbench.manifest.shapes import projection_shapes
from rvvbench.record.plain_model import compiled_way, packed_of, plain_model
from rvvbench.record.way import way


def variant(name: str, **changes: Any) -> Variant:
    return load_manifest(project.manifests_dir(), "variants", name, Variant)[0].model_copy(update=changes)


@pytest.mark.parametrize("small_batch", [True, False])
@pytest.mark.parametrize("name", ["inductor-row-major", "inductor-packed"])
@pytest.mark.parametrize("model", ["llama-mini", "qwen2-mini", "qwen3-mini", "qwen3-0.6b"])
def test_both_send_every_number_of_rows_the_same_way(model: str, name: str, small_batch: bool) -> None:
    config = load_manifest(project.manifests_dir(), "models", model, Model)[0].config
    declared = variant(name, small_batch=small_batch)
    plain, as_data = plain_model(config), declared.model_dump(mode="json", by_alias=True)
    for shape in projection_shapes(config):
        for m in range(1, 200):
            bucket = region(shape, m, declared).bucket
            wanted = "torch" if bucket is None else way(PATHS[mode_of(declared)], bucket)
            assert compiled_way(plain, as_data, shape.projection, m) == wanted


@pytest.mark.parametrize(("n", "k"), [(1023, 4096), (4096, 1023), (1024, 1024)])
def test_both_leave_the_same_small_weights_to_torch(n: int, k: int) -> None:
    config = load_manifest(project.manifests_dir(), "models", "llama-mini", Model)[0].config
    config = {**config, "hidden_size": k, "vocab_size": n}
    declared = variant("inductor-row-major")
    as_data = declared.model_dump(mode="json", by_alias=True)
    shape = projection_shapes(config)[-1]
    assert (shape.n, shape.k) == (n, k)
    left = region(shape, 1, declared).bucket is None
    assert (compiled_way(plain_model(config), as_data, "lm_head", 1) == "torch") is left is (min(n, k) < 1024)


@pytest.mark.parametrize("model", ["llama-mini", "qwen2-mini", "qwen3-mini"])
@pytest.mark.parametrize("name", ["inductor-row-major", "inductor-packed"])
def test_both_pack_the_same_bytes(model: str, name: str) -> None:
    config = load_manifest(project.manifests_dir(), "models", model, Model)[0].config
    declared = variant(name)
    found = packed_of(plain_model(config), declared.model_dump(mode="json", by_alias=True))
    wanted = packing(config, declared)
    assert (found.bytes, found.modules.total()) == (wanted.packed_bytes, len(wanted.packed))
    assert (found.bytes > 0) is (name == "inductor-packed")
