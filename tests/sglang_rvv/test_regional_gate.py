"""The regional gate and the buckets: every number of rows from 1 to 200 of every projection."""

import itertools

import pytest
from sglang_rvv.regional.gate import (
    EXPLICIT_PACKED,
    ROW_MAJOR,
    Call,
    Choice,
    bucket_of,
    buckets,
    choose,
    refusal_of_rows,
)
from sglang_rvv.settings import PROJECTIONS


def chosen(projection="o_proj", rows=1, mode=EXPLICIT_PACKED, small_batch=True, refuses=lambda m, n, k: None, **given):
    return choose(Call(projection, rows, 1024, 2048, mode, **given), small_batch=small_batch, refuses_row_major=refuses)


# The routing table of the five projections at these rows, small batches on: the artifact's rows, or F.linear.
TABLE = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 8: 8, 9: 16, 15: 16, 16: 16, 17: 32, 64: 64, 100: 128, 128: 128, 129: None}
HEAD = {rows: bucket if rows < 16 else None for rows, bucket in TABLE.items()}


@pytest.mark.parametrize("mode", [ROW_MAJOR, EXPLICIT_PACKED])
@pytest.mark.parametrize("projection", PROJECTIONS)
def test_the_routing_table(projection, mode):
    expected = HEAD if projection == "lm_head" else TABLE
    assert {rows: chosen(projection, rows, mode).bucket for rows in TABLE} == expected


@pytest.mark.parametrize(("projection", "small_batch"), [*itertools.product(PROJECTIONS, [True, False])])
def test_every_number_of_rows(projection, small_batch):
    for rows in range(1, 201):
        compiled = rows == 1 or (2 <= rows <= 15 and small_batch) or (16 <= rows <= 128 and projection != "lm_head")
        choice = chosen(projection, rows, small_batch=small_batch)
        assert (choice.bucket is not None) == compiled, rows
        assert (choice.reason is None) == compiled, rows
        if compiled:
            assert choice.bucket in buckets(small_batch=small_batch)
            assert choice.bucket >= rows
            assert choice.bucket < 2 * rows or not small_batch


def test_buckets():
    assert buckets(small_batch=True) == (1, 2, 4, 8, 16, 32, 64, 128)
    assert buckets(small_batch=False) == (16, 32, 64, 128)
    assert bucket_of(1, small_batch=False) == 16
    assert bucket_of(129, small_batch=True) is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"device": "cuda"}, "device cuda"),
        ({"input_type": "float16"}, "float16 x bfloat16"),
        ({"weight_type": "float16"}, "bfloat16 x float16"),
        ({"biased": True}, "bias"),
        ({"rows": 0}, "M not in 1..128"),
        ({"rows": 129}, "M not in 1..128"),
        ({"rows": 2, "small_batch": False}, "small batches are off"),
        ({"rows": 16, "projection": "lm_head"}, "lm_head of 16 rows and more"),
        ({"projection": "q_proj"}, "no such projection"),
        ({"mode": ROW_MAJOR, "refuses": lambda m, n, k: f"{m} {n} {k}"}, "1 1024 2048"),
        ({"rows": 9, "mode": ROW_MAJOR, "refuses": lambda m, n, k: f"{m} {n} {k}"}, "16 1024 2048"),
    ],
)
def test_what_is_refused_says_why(given, why):
    assert chosen(**given) == Choice(None, why)


def test_packed_weights_need_no_lowering_of_mm():
    assert chosen(mode=EXPLICIT_PACKED, refuses=lambda m, n, k: "never asked").bucket == 1


def test_a_bias_goes_before_rows():
    assert refusal_of_rows("qkv_proj", 1, small_batch=False) is None
    assert chosen("qkv_proj", 1, biased=True).reason == "bias"
