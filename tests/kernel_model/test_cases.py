"""What is modelled, what it computes and moves, and how counts of few units stand for many."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.kernel_model.attention_cases import attention
from rvvbench.kernel_model.cases import MODELS
from rvvbench.kernel_model.elementwise_cases import elementwise, gated_activation, norm, rotary_embedding
from rvvbench.kernel_model.heads import Heads
from rvvbench.kernel_model.linear_cases import ROWS, linear, linears, quantisations
from rvvbench.kernel_model.model_cases import cases_of
from rvvbench.kernel_model.prepare import model_configs
from rvvbench.kernel_model.roofline import roofs
from rvvbench.kernel_model.scale import COUNTED_UNITS, LARGE_UNIT_MACS, scaled, units_to_count
from rvvbench.manifest.shapes import projection_shapes

HEADS = Heads(32, 8, 64)
LINEAR = linear("packed_linear", "bf16", "m", "o_proj", m=4, n=2048, k=2048)
DECODE = attention("decode_attention", "bf16", "m", HEADS, context=72)
EXTEND = attention("extend_attention", "bf16", "m", HEADS, context=72, new=64)


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
    decode = attention("decode_attention_int8", "bf16", "m", HEADS, context=72)
    token = 8 * 128
    assert decode.moved_bytes == 72 * (token + 2 * 8 * 4) + 2 * (token + 2 * 32 * 64)
    extend = attention("extend_attention_int8", "bf16", "m", HEADS, context=72, new=64)
    assert extend.moved_bytes == 72 * (token + 2 * 8 * 4) + 2 * (64 * token + 2 * 64 * 32 * 64)
    assert (decode.macs, extend.macs) == (DECODE.macs, EXTEND.macs)


def test_an_int8_linear_moves_a_byte_for_each_weight_and_quantises_its_activations() -> None:
    one = linear("int8_linear", "int8", "m", "o_proj", m=4, n=2048, k=2048)
    assert (one.peak_macs_per_cycle, LINEAR.peak_macs_per_cycle) == (16, 8)
    assert (one.moved_bytes, one.macs) == (2048 * (2048 + 4) + 2 * 2 * 4 * 2048, LINEAR.macs)
    (llama,) = model_configs(MODELS[:1]).values()
    slow = [case for case in linears("int8_linear", "int8", "m", llama) if "127" in case.layer]
    assert [case.whole for case in slow[:1]] == ["int8_linear:type=int8,m=1,k=2048,extreme=1,n=2048"]
    assert {case.layer for case in slow} == {"o_proj, all codes +-127"}
    assert not [case for case in linears("packed_linear", "bf16", "m", llama) if "127" in case.layer]
    (quantised, *_) = quantisations("bf16", "m", llama)
    assert (quantised.whole, quantised.elements, quantised.macs) == ("token_quant:type=bf16,k=2048,m=1", 2048, 0)
    assert quantised.moved_bytes == 2048 * 3 + 4
    assert quantisations("fp32", "m", llama) == []


def test_an_elementwise_operator_has_elements_and_no_multiply_adds() -> None:
    fused = norm("fused_add_rmsnorm", "bf16", "m", "hidden state", rows=64, n=2048)
    assert fused.text(2) == "norm:type=bf16,form=fused_add_rmsnorm,n=2048,m=2"
    assert (fused.elements, fused.macs, fused.moved_bytes) == (64 * 2048, 0, 2 * (4 * 64 * 2048 + 2048))
    assert norm("rmsnorm", "bf16", "m", "h", rows=1, n=2048).moved_bytes == 2 * 3 * 2048
    gate = gated_activation("bf16", "m", rows=1, n=8192)
    assert (gate.whole, gate.moved_bytes) == ("gated_activation:type=bf16,form=silu,n=8192,m=1", 2 * 3 * 8192)
    rope = rotary_embedding("bf16", "m", HEADS, rows=1)
    assert (rope.elements, rope.moved_bytes) == (40 * 64, 2 * (2 * 40 * 64 + 64))


def test_only_models_that_normalise_heads_have_such_a_norm() -> None:
    for name, config in model_configs(MODELS).items():
        rows = [case.units for case in elementwise("norm", "bf16", name, config) if case.layer == "queries and keys"]
        assert rows == ([24, 64 * 24] if name == "qwen3-0.6b" else [])
    assert elementwise("norm", "fp32", name, config) == []


def test_a_prompt_without_a_prefix_is_extended_too_and_parts_of_operators_have_no_case() -> None:
    configs = model_configs(MODELS[:1])
    contexts = [dict(case.fixed)["context"] for case in cases_of(configs, [("extend_attention", "bf16")])]
    assert contexts == [64, 72, 512, 2048]
    assert cases_of(configs, [("store_kv", "bf16")]) == []


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


def test_of_large_units_two_sizes_are_counted() -> None:
    assert units_to_count(8, LARGE_UNIT_MACS - 1) == (1, 2, 3)
    assert units_to_count(8, LARGE_UNIT_MACS) == (1, 2)
    assert units_to_count(2, LARGE_UNIT_MACS) == (2,)
    two = {1: {(0, 1): 5, (1, 2): 3}, 2: {(0, 1): 8, (1, 2): 3}}
    assert scaled(two, 8) == {(0, 1): 26, (1, 2): 3}
    assert scaled({1: {(0, 1): 5}, 2: {(0, 1): 4}}, 8) is None


def test_the_roof_says_what_limits() -> None:
    memory, wide = roofs(macs=10**6, moved_bytes=10**8, cycles=10**6)
    assert (memory.bound, memory.share) == ("memory", 1.0)
    assert memory.modelled_s == pytest.approx(10**8 / 5.7e9)
    assert wide.modelled_s == pytest.approx(10**8 / 10.66e9)
    slow, _ = roofs(macs=8 * 10**9, moved_bytes=1, cycles=4e9)
    assert (slow.bound, slow.share) == ("cycles", pytest.approx(0.25))
    int8, _ = roofs(macs=8 * 10**9, moved_bytes=1, cycles=4e9, macs_per_cycle=16)
    assert int8.share == pytest.approx(0.125)
