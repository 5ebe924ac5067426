"""The gate and the buckets of compiled regions, and the routing tables that follow from them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench import project
from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.models import PROJECTIONS, Model, OneBatch, Serving, Variant
from rvvbench.manifest.operators import allowed_ops, expected_ops
from rvvbench.manifest.regional import LARGE_BUCKETS, buckets, region
from rvvbench.manifest.routing import Route, allowed_routes, artifacts_of, predicted_routes
from rvvbench.manifest.shapes import ProjectionShape, projection_shapes

WORKLOAD = OneBatch(kind="one-batch", batch_size=1, input_len=64, output_len=8, seed=0)
NAMES = ("inductor-row-major", "inductor-packed", "inductor-packed-rvv-attention")


def config(name: str) -> dict[str, Any]:
    return load_manifest(project.manifests_dir(), "models", name, Model)[0].config


def variant(name: str, **changes: Any) -> Variant:
    return load_manifest(project.manifests_dir(), "variants", name, Variant)[0].model_copy(update=changes)


def shape(projection: str = "o_proj", n: int = 2048, k: int = 2048, bias: bool = False) -> ProjectionShape:
    return ProjectionShape(projection, n, k, 1, bias)  # type: ignore[arg-type]


BUCKETS = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 8: 8, 9: 16, 15: 16, 16: 16, 17: 32, 64: 64, 100: 128, 128: 128, 129: None}
"""Of the issue: the rows of a call, and of the artifact that computes it."""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("projection", PROJECTIONS)
@pytest.mark.parametrize(("m", "bucket"), BUCKETS.items())
def test_rows_take_the_artifact_of_their_bucket(name: str, projection: str, m: int, bucket: int | None) -> None:
    expected = None if projection == "lm_head" and m >= 16 else bucket
    assert region(shape(projection), m, variant(name)).bucket == expected


@pytest.mark.parametrize(("m", "bucket"), [(1, 16), (2, None), (15, None), (16, 16), (17, 32), (128, 128), (129, None)])
def test_without_small_batches_the_least_artifact_has_16_rows(m: int, bucket: int | None) -> None:
    assert region(shape(), m, variant("inductor-packed", small_batch=False)).bucket == bucket


def test_a_head_of_one_row_is_compiled_without_small_batches_too() -> None:
    assert region(shape("lm_head"), 1, variant("inductor-packed", small_batch=False)).bucket == LARGE_BUCKETS[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_projection_with_a_bias_is_left_to_torch(name: str) -> None:
    found = region(shape("qkv_proj", bias=True), 1, variant(name))
    assert (found.bucket, "bias" in found.reason) == (None, True)


@pytest.mark.parametrize(("n", "k", "lowered"), [(1024, 1024, True), (1023, 1024, False), (1024, 1023, False)])
def test_a_small_weight_is_lowered_only_from_its_packed_form(n: int, k: int, lowered: bool) -> None:
    assert (region(shape(n=n, k=k), 1, variant("inductor-row-major")).bucket == 1) is lowered
    assert region(shape(n=n, k=k), 1, variant("inductor-packed")).bucket == 1


@given(m=st.integers(1, 300), small_batch=st.booleans(), head=st.booleans())
def test_an_artifact_is_the_least_that_holds_the_rows(m: int, small_batch: bool, head: bool) -> None:
    declared = variant("inductor-packed", small_batch=small_batch)
    found = region(shape("lm_head" if head else "down_proj"), m, declared)
    if found.bucket is None:
        assert m > 128 or (head and m >= 16) or (2 <= m <= 15 and not small_batch)
    else:
        assert found.bucket in buckets(small_batch=small_batch)
        assert m <= found.bucket and all(one < m for one in buckets(small_batch=small_batch) if one < found.bucket)


def by_place(routes: list[Route]) -> dict[tuple[str, int], tuple[str, int | None, int | None]]:
    found = {(route.projection, route.m): (route.path, route.bucket, route.calls) for route in routes}
    assert len(found) == len(routes)
    return found


def test_one_batch_runs_the_prefills_artifact_once_and_that_of_one_row_at_every_step() -> None:
    found = by_place(predicted_routes(config("llama-mini"), variant("inductor-packed"), WORKLOAD))
    for projection in ("qkv_proj", "o_proj", "gate_up_proj", "down_proj"):
        assert found[projection, 64] == ("inductor_packed", 64, 2)
        assert found[projection, 1] == ("inductor_packed", 1, 14)
    assert found["lm_head", 1] == ("inductor_packed", 1, 8)
    assert found["norm", 1][:2] == found["decode_attention", 1][:2] == ("torch", None)


def test_biased_projections_of_qwen2_fall_back_and_the_others_do_not() -> None:
    found = by_place(predicted_routes(config("qwen2-mini"), variant("inductor-row-major"), WORKLOAD))
    assert found["qkv_proj", 64][:2] == found["qkv_proj", 1][:2] == ("torch", None)
    assert found["o_proj", 64][:2] == ("inductor_row_major", 64)


@pytest.mark.parametrize("name", NAMES)
def test_every_call_is_counted_as_torch_native_counts_it(name: str) -> None:
    for model in ("llama-mini", "qwen2-mini", "qwen3-mini"):
        tables = []
        for one in ("torch-native", name):
            calls: Counter[tuple[str, int]] = Counter()
            for route in predicted_routes(config(model), variant(one), WORKLOAD):
                calls[route.projection, route.m] += route.calls or 0
            tables.append(calls)
        assert tables[0] == tables[1]


def test_two_clients_take_the_two_row_artifacts_of_all_five_projections() -> None:
    serving = Serving(kind="serving", concurrency=[1, 2], requests=4, input_len=64, output_len=8, seed=0)
    routes = allowed_routes(config("llama-mini"), variant("inductor-packed"), serving, 2)
    assert {route.projection for route in routes if route.m == 2 and route.bucket == 2} == set(PROJECTIONS)
    assert all(route.modules == (1 if route.projection == "lm_head" else 2) for route in routes if route.bucket)


def test_artifacts_are_those_that_the_routes_take_and_no_other() -> None:
    model, declared = config("llama-mini"), variant("inductor-row-major")
    found = artifacts_of(model, declared, predicted_routes(model, declared, WORKLOAD))
    assert [(one.projection, one.bucket) for one in found] == [
        *((name, rows) for name in ("qkv_proj", "o_proj", "gate_up_proj", "down_proj") for rows in (1, 64)),
        ("lm_head", 1),
    ]
    sizes = {shape.projection: (shape.n, shape.k) for shape in projection_shapes(model)}
    assert all((one.out_features, one.in_features) == sizes[one.projection] for one in found)
    assert {one.mode for one in found} == {"row_major"}
    assert artifacts_of(model, variant("torch-native"), []) == ()


def test_compiled_regions_call_no_operator_of_the_kernel_library() -> None:
    model = config("llama-mini")
    assert expected_ops(model, variant("inductor-packed"), WORKLOAD) == {}
    attention = allowed_ops(
        model,
        variant("inductor-packed-rvv-attention"),
        Serving(kind="serving", concurrency=[1], requests=1, input_len=64, output_len=8, seed=0),
    )
    assert set(attention) == {"decode_attention_cpu", "extend_attention_cpu"}
