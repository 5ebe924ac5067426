"""Which products are lowered: the limits from both sides, and every M."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rvv_inductor.gate import Product, refusal

LET_IN = Product(1, 1024, 1024)


@pytest.mark.parametrize("m", range(201))
def test_every_number_of_rows(m):
    assert (refusal(replace(LET_IN, m=m)) is None) == (1 <= m <= 128)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"device": "cuda"}, "device cuda"),
        ({"input_type": "float16"}, "float16 x bfloat16"),
        ({"weight_type": "float32"}, "bfloat16 x float32"),
        ({"input_dims": 3}, "3-D x 2-D"),
        ({"weight_dims": 1}, "2-D x 1-D"),
        ({"biased": True}, "bias"),
        ({"m": None}, "open shape"),
        ({"k": None}, "open shape"),
        ({"plain": False}, "operands are not row-major"),
        ({"n": 1023}, "N < 1024"),
        ({"k": 1023}, "K < 1024"),
        ({"m": 129}, "M not in 1..128"),
        ({"m": 0}, "M not in 1..128"),
    ],
)
def test_each_condition_alone_refuses_and_is_named(change, why):
    assert refusal(LET_IN) is None
    assert refusal(replace(LET_IN, **change)) == why


@given(m=st.integers(0, 300), n=st.integers(1, 4096), k=st.integers(1, 4096), biased=st.booleans())
def test_the_gate_is_the_sentence_that_says_it(m, n, k, biased):
    lets_in = n >= 1024 and k >= 1024 and m * n * k >= 1_000_000 and 1 <= m <= 128 and not biased
    assert (refusal(Product(m, n, k, biased=biased)) is None) == lets_in
