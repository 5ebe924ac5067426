"""What is modelled, what it computes and moves, and how counts of few units stand for many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.kernel_model.cases import MODELS, QUANTISED_ROWS, ROWS, Case, cases_of
from rvvbench.kernel_model.prepare import model_configs
from rvvbench.kernel_model.roofline import roofs
from rvvbench.kernel_model.scale import COUNTED_UNITS, scaled, units_to_count
from rvvbench.manifest.shapes import projection_shapes

LINEAR = Case("packed_linear", "bf16", "m", "o_proj", 32, (("m", 4), ("k", 2048)))
DECODE = Case("decode_attention", "bf16", "m", "a", 8, (("group", 4), ("head", 64), ("context", 72)))
EXTEND = Case("extend_attention", "bf16", "m", "a", 8, (("group", 4), ("head", 64), ("context", 72), ("new", 64)))
INT8 = Case("int8_linear", "int8", "m", "o_proj", 32, (("m", 4), ("k", 2048)))
QUANT = Case("token_quant", "bf16", "m", "activations", 64, (("k", 2048),))


def test_a_case_is_written_as_the_driver_reads_it() -> None:
    assert LINEAR.whole == "packed_linear:type=bf16,m=4,k=2048,n=2048"
    assert LINEAR.text(2) == "packed_linear:type=bf16,m=4,k=2048,n=128"
    assert DECODE.text(2) == "decode_attention:type=bf16,head=64,context=72,kv_heads=2,heads=8"
    assert INT8.text(2) == "int8_linear:type=int8,m=4,k=2048,n=128"
    assert QUANT.text(3) == "token_quant:type=bf16,k=2048,m=3"


def test_multiply_adds_and_bytes_of_a_linear() -> None:
    assert LINEAR.macs == 4 * 2048 * 2048
    assert LINEAR.moved_bytes == 2 * (2048 * 2048 + 4 * 2048 + 4 * 2048)


def test_weights_of_an_int8_linear_are_single_bytes_with_a_scale_for_each_column() -> None:
    assert INT8.macs == LINEAR.macs
    assert INT8.moved_bytes == 2048 * 2048 + 4 * 2048 + 2 * (4 * 2048 + 4 * 2048)


def test_a_quantisation_reads_bf16_and_writes_codes_and_scales() -> None:
    assert QUANT.macs == 64 * 2048
    assert QUANT.moved_bytes == 64 * 2048 * (2 + 1) + 64 * 4


def test_int8_linears_are_modelled_with_the_slowest_activations_too() -> None:
    configs = model_configs(MODELS)
    cases = cases_of(configs, [("int8_linear", "int8"), ("token_quant", "bf16")])
    extreme = [case for case in cases if dict(case.fixed).get("extreme")]
    assert [(case.model, dict(case.fixed)["m"]) for case in extreme] == [(name, m) for name in MODELS for m in ROWS]
    assert all("o_proj" in case.layer and "extreme=1" in case.whole for case in extreme)
    depths = {(name, shape.k) for name, config in configs.items() for shape in projection_shapes(config)}
    quantised = [case for case in cases if case.operation == "token_quant"]
    assert {(case.model, dict(case.fixed)["k"]) for case in quantised} == depths
    assert len(quantised) == len(depths) * len(QUANTISED_ROWS)


def test_multiply_adds_and_bytes_of_attention() -> None:
    assert DECODE.macs == 32 * 72 * (64 + 64)
    assert DECODE.moved_bytes == 2 * (72 * 8 * 128 + 2 * 32 * 64 + 8 * 128)
    # 64 new tokens after 8: token i sees 8 + i + 1 keys.
    assert EXTEND.macs == 32 * sum(8 + i + 1 for i in range(64)) * 128
    assert EXTEND.moved_bytes == 2 * (72 * 8 * 128 + 2 * 64 * 32 * 64)


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
    int8, _ = roofs(macs=8 * 10**9, moved_bytes=1, cycles=1e9, macs_per_cycle=INT8.peak_macs_per_cycle)
    assert (LINEAR.peak_macs_per_cycle, int8.share) == (8, pytest.approx(0.5))
