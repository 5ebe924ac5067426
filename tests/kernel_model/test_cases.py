"""What is modelled, what it computes and moves, and how counts of few units stand for many."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.kernel_model.cases import MODELS, ROWS, Case, cases_of
from rvvbench.kernel_model.prepare import model_configs
from rvvbench.kernel_model.roofline import roofs
from rvvbench.kernel_model.scale import COUNTED_UNITS, scaled, units_to_count
from rvvbench.manifest.shapes import projection_shapes

LINEAR = Case("packed_linear", "bf16", "m", "o_proj", 32, (("m", 4), ("k", 2048)))
DECODE = Case("decode_attention", "bf16", "m", "a", 8, (("group", 4), ("head", 64), ("context", 72)))
EXTEND = Case("extend_attention", "bf16", "m", "a", 8, (("group", 4), ("head", 64), ("context", 72), ("new", 64)))

DECODE_INT8 = replace(DECODE, operation="decode_attention_int8")
EXTEND_INT8 = replace(EXTEND, operation="extend_attention_int8")


def test_a_case_is_written_as_the_driver_reads_it() -> None:
    assert LINEAR.whole == "packed_linear:type=bf16,m=4,k=2048,n=2048"
    assert LINEAR.text(2) == "packed_linear:type=bf16,m=4,k=2048,n=128"
    assert DECODE.text(2) == "decode_attention:type=bf16,head=64,context=72,kv_heads=2,heads=8"


def test_multiply_adds_and_bytes_of_a_linear() -> None:
    assert LINEAR.macs == 4 * 2048 * 2048
    assert LINEAR.moved_bytes == 2 * (2048 * 2048 + 4 * 2048 + 4 * 2048)


def test_multiply_adds_and_bytes_of_attention() -> None:
    assert DECODE.macs == 32 * 72 * (64 + 64)
    assert DECODE.moved_bytes == 2 * (72 * 8 * 128 + 2 * 32 * 64 + 8 * 128)
    # 64 new tokens after 8: token i sees 8 + i + 1 keys.
    assert EXTEND.macs == 32 * sum(8 + i + 1 for i in range(64)) * 128
    assert EXTEND.moved_bytes == 2 * (72 * 8 * 128 + 2 * 64 * 32 * 64)


def test_an_int8_cache_moves_codes_and_scales() -> None:
    assert (DECODE_INT8.macs, EXTEND_INT8.macs) == (DECODE.macs, EXTEND.macs)
    # 8 KV heads: 128 codes of one byte and 2 scales of four for each; queries, outputs and new rows have 2 bytes.
    assert DECODE_INT8.moved_bytes == 72 * 8 * (128 + 2 * 4) + 2 * (8 * 128 + 2 * 32 * 64)
    assert EXTEND_INT8.moved_bytes == 72 * 8 * (128 + 2 * 4) + 2 * (64 * 8 * 128 + 2 * 64 * 32 * 64)
    assert DECODE_INT8.text(2) == "decode_attention_int8:type=bf16,head=64,context=72,kv_heads=2,heads=8"


def test_what_is_part_of_an_operation_is_no_case() -> None:
    configs = model_configs(("llama-3.2-1b",))
    available = [("decode_attention_int8", "bf16"), ("store_kv", "bf16"), ("extend_attention_int8", "bf16")]
    cases = cases_of(configs, available)
    assert {case.operation for case in cases} == {"decode_attention_int8", "extend_attention_int8"}
    assert all(("new" in dict(case.fixed)) == case.operation.startswith("extend") for case in cases)


def test_every_projection_of_every_model_is_a_whole_number_of_units() -> None:
    configs = model_configs(MODELS)
    cases = cases_of(configs, [("packed_linear", "bf16")])
    shapes = {(name, s.projection): (s.n, s.k) for name, c in configs.items() for s in projection_shapes(c)}
    assert len(cases) == len(shapes) * len(ROWS)
    for case in cases:
        n, k = shapes[case.model, case.layer]
        assert (case.units * 64, dict(case.fixed)["k"]) == (n, k)


@given(base=st.integers(0, 50), per_unit=st.integers(0, 50), units=st.integers(5, 4000))
def test_even_growth_is_scaled_exactly(base: int, per_unit: int, units: int) -> None:
    counted = {n: {(0, 1): base + per_unit * n, (1, 1): 7 * n} for n in COUNTED_UNITS}
    expected = {(0, 1): base + per_unit * units, (1, 1): 7 * units}
    assert scaled(counted, units) == {step: count for step, count in expected.items() if count}


def test_uneven_growth_is_not_scaled() -> None:
    two_at_a_time = {n: {(0, 1): -(-n // 2)} for n in COUNTED_UNITS}
    assert scaled(two_at_a_time, 100) is None
    appearing = {1: {}, 2: {}, 3: {(0, 1): 1}}
    assert scaled(appearing, 100) is None


def test_few_units_are_counted_whole() -> None:
    assert units_to_count(3) == (3,)
    assert units_to_count(4) == COUNTED_UNITS


def test_the_roof_says_what_limits() -> None:
    memory, wide = roofs(macs=10**6, moved_bytes=10**8, cycles=10**6)
    assert (memory.bound, memory.share) == ("memory", 1.0)
    assert memory.modelled_s == pytest.approx(10**8 / 5.7e9)
    assert wide.modelled_s == pytest.approx(10**8 / 10.66e9)
    slow, _ = roofs(macs=8 * 10**9, moved_bytes=1, cycles=4e9)
    assert (slow.bound, slow.share) == ("cycles", pytest.approx(0.25))
