"""The predicted routing tables and operator calls of the models that we ship."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from rvvbench import project
from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.models import PROJECTIONS, Model, OneBatch, Serving, Variant
from rvvbench.manifest.operators import allowed_ops, expected_ops
from rvvbench.manifest.routing import Route, allowed_routes, predicted_routes

WORKLOAD = OneBatch(kind="one-batch", batch_size=2, input_len=64, output_len=8, seed=0)
SERVING = Serving(kind="serving", concurrency=[1, 2], requests=4, input_len=64, output_len=8, seed=0)


def config(name: str) -> dict[str, Any]:
    return load_manifest(project.manifests_dir(), "models", name, Model)[0].config


def variant(name: str, **changes: Any) -> Variant:
    found = load_manifest(project.manifests_dir(), "variants", name, Variant)[0]
    return found.model_copy(update=changes)


def table(routes: list[Route]) -> dict[tuple[str, int, str], int | None]:
    found = {(route.projection, route.m, route.path): route.calls for route in routes}
    assert len(found) == len(routes)
    return found


def test_prefill_and_decode_steps_take_the_path_of_the_variant() -> None:
    only = variant("rvv-kernels", projections=["qkv_proj", "lm_head"], elementwise="torch")
    routes = table(predicted_routes(config("llama-3.2-1b"), only, WORKLOAD))
    assert routes["qkv_proj", 128, "packed"] == 16
    assert routes["qkv_proj", 2, "packed"] == 16 * 7
    assert routes["o_proj", 2, "torch"] == 16 * 7
    assert routes["lm_head", 2, "packed"] == 8
    assert routes["extend_attention", 128, "kernels"] == 16
    assert routes["decode_attention", 2, "kernels"] == 16 * 7
    assert routes["norm", 128, "torch"] == 33
    assert routes["norm", 2, "torch"] == 33 * 7
    assert routes["gated_activation", 2, "torch"] == routes["rotary_embedding", 2, "torch"] == 16 * 7


def test_every_variant_has_the_same_calls_whatever_their_paths() -> None:
    names = ["torch-native", "rvv-kernels", "rvv-kernels-int8-kv", "rvv-w8a8", "rvv-kernels-budget-50"]
    for model in ("llama-mini", "qwen2-mini", "qwen3-mini"):
        found = []
        for name in names:
            calls: Counter[tuple[str, int]] = Counter()
            for route in predicted_routes(config(model), variant(name), WORKLOAD):
                calls[route.projection, route.m] += route.calls or 0
            found.append(calls)
        assert all(calls == found[0] for calls in found)


def test_queries_and_keys_of_qwen3_are_normalised_head_by_head() -> None:
    norms = {r.m: r.calls for r in predicted_routes(config("qwen3-mini"), variant("torch-native"), WORKLOAD)
             if r.projection == "norm"}  # fmt: skip
    assert norms == {128: 5, 128 * 8: 2, 128 * 4: 2, 2: 35, 2 * 8: 14, 2 * 4: 14}


def test_norms_that_have_equally_many_rows_are_one_line() -> None:
    # One KV head: keys have as many rows as there are tokens.
    one = {**config("qwen3-mini"), "num_key_value_heads": 1}
    routes = predicted_routes(one, variant("torch-native"), WORKLOAD)
    assert {r.m: r.calls for r in routes if r.projection == "norm"} == {128: 7, 1024: 2, 2: 49, 16: 14}


def test_a_budget_parts_the_modules_of_a_projection() -> None:
    routes = table(predicted_routes(config("llama-mini"), variant("rvv-kernels-budget-50"), WORKLOAD))
    assert (routes["down_proj", 2, "packed"], routes["down_proj", 2, "row_major"]) == (7, 7)
    assert (routes["down_proj", 128, "packed"], routes["down_proj", 128, "row_major"]) == (1, 1)
    assert routes["lm_head", 2, "row_major"] == 8
    assert ("lm_head", 2, "packed") not in routes


def test_a_w8a8_checkpoint_is_int8_in_its_layers_and_not_in_its_head() -> None:
    paths = {(r.projection, r.path) for r in predicted_routes(config("llama-mini"), variant("rvv-w8a8"), WORKLOAD)}
    assert {pair for pair in paths if pair[0] in PROJECTIONS} == {
        *((name, "w8a8") for name in PROJECTIONS[:4]),
        ("lm_head", "packed"),
    }
    left = variant("rvv-w8a8", projections=list(PROJECTIONS[:4]))
    assert ("lm_head", 2, "torch") in table(predicted_routes(config("llama-mini"), left, WORKLOAD))


def test_a_single_token_has_no_decode_step() -> None:
    single = WORKLOAD.model_copy(update={"output_len": 1})
    routes = predicted_routes(config("llama-mini"), variant("rvv-kernels"), single)
    assert {(r.projection, r.m) for r in routes} == {
        *((name, 128) for name in (*PROJECTIONS[:4], "extend_attention", "norm", "gated_activation")),
        ("rotary_embedding", 128),
        ("lm_head", 2),
    }
    assert "decode_attention_cpu" not in expected_ops(config("llama-mini"), variant("rvv-kernels"), single)


@pytest.mark.parametrize(
    ("model", "name", "ops"),
    [
        ("llama-mini", "torch-native", {}),
        (
            "llama-mini",
            "rvv-kernels",
            {
                "decode_attention_cpu": 14,
                "extend_attention_cpu": 2,
                "fused_add_rmsnorm_cpu": 32,
                "rmsnorm_cpu": 8,
                "rotary_embedding_cpu": 16,
                "silu_and_mul_cpu": 16,
                "weight_packed_linear_out": 72,
            },
        ),
        (
            "qwen3-mini",
            "rvv-kernels-int8-kv",
            {
                "decode_attention_int8_cpu": 14,
                "extend_attention_int8_cpu": 2,
                "fused_add_rmsnorm_cpu": 32,
                "rmsnorm_cpu": 8 * 5,
                "rotary_embedding_cpu": 16,
                "silu_and_mul_cpu": 16,
                "store_kv": 16,
                "weight_packed_linear_out": 72,
            },
        ),
        (
            "llama-mini",
            "rvv-w8a8",
            {
                "decode_attention_cpu": 14,
                "extend_attention_cpu": 2,
                "fused_add_rmsnorm_cpu": 32,
                "int8_scaled_mm_with_quant": 64,
                "per_token_quant_int8_cpu": 64,
                "rmsnorm_cpu": 8,
                "rotary_embedding_cpu": 16,
                "silu_and_mul_cpu": 16,
                "weight_packed_linear_out": 8,
            },
        ),
        (
            "llama-mini",
            "rvv-kernels-budget-50",
            {
                "decode_attention_cpu": 14,
                "extend_attention_cpu": 2,
                "fused_add_rmsnorm_cpu": 32,
                "linear_rowmajor": 16,
                "rmsnorm_cpu": 8,
                "rotary_embedding_cpu": 16,
                "silu_and_mul_cpu": 16,
                "weight_packed_linear_out": 56,
            },
        ),
    ],
)
def test_operators_are_called_as_often_as_their_routes_are_taken(model: str, name: str, ops: dict[str, int]) -> None:
    assert expected_ops(config(model), variant(name), WORKLOAD) == ops
    assert allowed_ops(config(model), variant(name), SERVING) == dict.fromkeys(ops)


def test_a_server_may_take_the_routes_of_every_pass_that_its_requests_can_make() -> None:
    routes = allowed_routes(config("qwen3-mini"), variant("rvv-kernels"), SERVING, 2)
    assert all(route.calls is None for route in routes)
    by_line: dict[str, set[int]] = {}
    for route in routes:
        by_line.setdefault(route.projection, set()).add(route.m)
    assert by_line["qkv_proj"] == by_line["gated_activation"] == by_line["rotary_embedding"] == {1, 2, 64, 128}
    assert (by_line["decode_attention"], by_line["extend_attention"]) == ({1, 2}, {64, 128})
    assert by_line["lm_head"] == {1, 2}
    assert by_line["norm"] == {m * heads for m in (1, 2, 64, 128) for heads in (1, 8, 4)}


def test_a_server_sends_as_many_modules_each_way_in_every_pass() -> None:
    routes = allowed_routes(config("llama-mini"), variant("rvv-kernels-budget-50"), SERVING, 2)
    modules = {(route.projection, route.path): route.modules for route in routes}
    assert modules["qkv_proj", "packed"] == 2
    assert (modules["down_proj", "packed"], modules["down_proj", "row_major"]) == (1, 1)
    assert (modules["lm_head", "row_major"], modules["decode_attention", "kernels"]) == (1, 2)
    assert modules["norm", "kernels"] is None
