"""What is modelled, what it computes and moves, and how counts of few units stand for many."""

from __future__ import annotations

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


def test_elements_and_bytes_of_elementwise_operators() -> None:
    add = Case("norm", "bf16", "m", "hidden state", 64, (("n", 2048),), "fused_add_rmsnorm")
    assert add.whole == "norm:type=bf16,form=fused_add_rmsnorm,n=2048,m=64"
    assert (add.macs, add.elements, add.moved_bytes) == (0, 64 * 2048, 2 * (4 * 64 * 2048 + 2048))
    gate = Case("gated_activation", "bf16", "m", "MLP", 1, (("n", 8192),), "silu")
    assert (gate.elements, gate.moved_bytes) == (8192, 2 * 3 * 8192)
    turn = Case("rotary_embedding", "bf16", "m", "a", 2, (("heads", 32), ("kv_heads", 8), ("head", 64)), "neox")
    assert (turn.elements, turn.moved_bytes) == (2 * 40 * 64, 2 * (2 * 2 * 40 * 64 + 2 * 64))


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
