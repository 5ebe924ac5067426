"""What is packed under a budget: in the documented order, first fit, to the byte."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench import project
from rvvbench.manifest.load import load_manifest
from rvvbench.manifest.models import PROJECTIONS, Model, Variant
from rvvbench.manifest.packing import modules, packing
from rvvbench.manifest.shapes import packed_bytes

MINI = load_manifest(project.manifests_dir(), "models", "llama-mini", Model)[0].config
QKV, OUT, GATE_UP, DOWN, HEAD = 3_145_728, 2_097_152, 4_194_304, 2_097_152, 20_971_520
"""Bytes of one packed module of llama-mini."""


def variant(**changes: Any) -> Variant:
    fields = {"attention_backend": "torch_native", "linear": "packed", "projections": list(PROJECTIONS), **changes}
    return Variant.model_validate({"schema": "rvvbench/variant/1", "name": "v", "title": "v", **fields})


def test_without_a_budget_everything_that_is_listed_is_packed() -> None:
    found = packing(MINI, variant())
    assert [module.name for module in found.packed] == [
        *(f"layers.{layer}.{name}" for layer, name in product((0, 1), PROJECTIONS[:4])),
        "lm_head",
    ]
    assert [module.bytes for module in found.packed] == [QKV, OUT, GATE_UP, DOWN] * 2 + [HEAD]
    assert (found.packed_bytes, found.row_major, found.budget_bytes) == (packed_bytes(MINI), (), None)
    assert found.budget_mib is None


@pytest.mark.parametrize(
    ("percent", "left_out"),
    [
        (0, [*(f"layers.{layer}.{name}" for layer, name in product((0, 1), PROJECTIONS[:4])), "lm_head"]),
        # 11,010,048 bytes: qkv and o leave 5,767,168, gate_up 1,572,864. Down does not fit, and nothing else does.
        (25, ["layers.0.down_proj", *(f"layers.1.{name}" for name in PROJECTIONS[:4]), "lm_head"]),
        # 22,020,096 bytes: after the first layer 10,485,760, after qkv, o and gate_up of the second 1,048,576.
        (50, ["layers.1.down_proj", "lm_head"]),
        (100, []),
    ],
)
def test_what_does_not_fit_stays_row_major_and_the_next_is_tried(percent: int, left_out: list[str]) -> None:
    found = packing(MINI, variant(packed_budget_percent=percent))
    assert [module.name for module in found.row_major] == left_out
    assert found.budget_bytes == packed_bytes(MINI) * percent // 100
    assert found.packed_bytes + found.row_major_bytes == packed_bytes(MINI)


def test_a_smaller_module_behind_one_that_does_not_fit_is_still_packed() -> None:
    # 30 % of 25,034,752 bytes: qkv and o leave 2,267,545, too little for gate_up and enough for down.
    small_head = {**MINI, "vocab_size": 960}
    found = packing(small_head, variant(packed_budget_percent=30))
    assert [module.name for module in found.packed] == [
        f"layers.0.{name}" for name in ("qkv_proj", "o_proj", "down_proj")
    ]


def test_layers_in_w8a8_take_a_byte_for_each_element_and_the_head_two() -> None:
    found = modules(MINI, variant(linear="w8a8"))
    assert [module.bytes for module in found[:4]] == [QKV // 2, OUT // 2, GATE_UP // 2, DOWN // 2]
    assert found[-1].bytes == HEAD


@given(
    percent=st.integers(0, 100),
    layers=st.integers(1, 5),
    listed=st.lists(st.sampled_from(PROJECTIONS), min_size=1, unique=True),
    vocabulary=st.integers(1, 40_000),
)
def test_the_budget_is_never_exceeded_and_no_module_that_would_fit_at_its_turn_is_left_out(
    percent: int, layers: int, listed: list[Any], vocabulary: int
) -> None:
    config = {**MINI, "num_hidden_layers": layers, "vocab_size": vocabulary}
    found = packing(config, variant(projections=listed, packed_budget_percent=percent))
    assert found.budget_bytes is not None and found.packed_bytes <= found.budget_bytes
    assert {*found.packed, *found.row_major} == set(modules(config, variant(projections=listed)))
    left = found.budget_bytes
    for module in modules(config, variant(projections=listed)):
        assert (module in found.packed) == (module.bytes <= left)
        left -= module.bytes if module in found.packed else 0
    assert found.budget_mib is not None and found.budget_mib * 1024**2 == found.budget_bytes
