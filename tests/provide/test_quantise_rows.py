"""The numbers of `rvvbench-w8a8/1`, against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rvvbench.provide.quantise.rows import LEAST_SCALE, quantise_rows
from rvvbench.provide.synthetic.stream import from_bf16

Row = NDArray[np.float32]


def bf16_rows() -> st.SearchStrategy[Row]:
    """Rows of BF16 numbers of all sizes, of similar sizes, as weights are, and of sizes near the smallest there are."""

    def row(least: int, largest: int) -> st.SearchStrategy[Row]:
        magnitudes = st.integers(least, largest)
        patterns = st.builds(lambda magnitude, sign: magnitude | sign << 15, magnitudes, st.integers(0, 1))
        return st.lists(patterns, min_size=1, max_size=40).map(lambda row: from_bf16(np.array(row, np.uint16)))

    return st.one_of(row(0, 0x7F7F), row(0x3C00, 0x4000), row(0, 0x0480))


def fp16_rows() -> st.SearchStrategy[Row]:
    patterns = st.builds(lambda magnitude, sign: magnitude | sign << 15, st.integers(0, 0x7BFF), st.integers(0, 1))
    return st.lists(patterns, min_size=1, max_size=40).map(
        lambda row: np.array(row, np.uint16).view(np.float16).astype(np.float32)
    )


def rows() -> st.SearchStrategy[Row]:
    return st.one_of(bf16_rows(), fp16_rows())


def quantised(row: Row) -> tuple[list[int], Fraction]:
    codes, scales = quantise_rows(row[None, :])
    assert (codes.dtype, codes.shape) == (np.int8, (1, len(row)))
    assert (scales.dtype, scales.shape) == (np.float32, (1,))
    return [int(code) for code in codes[0]], Fraction(float(scales[0]))


@given(rows())
@example(from_bf16(np.array([0x42FE, 0x3F00, 0x3FC0, 0xBF00, 0xBFC0, 0x4020], np.uint16)))
@example(from_bf16(np.array([0x3FFD, 0x3F7D], np.uint16)))
def test_a_code_is_the_integer_nearest_to_the_exact_quotient_ties_to_even(row: Row) -> None:
    # The second example has half of its largest weight: just below 63.5 scales, and a tie if the quotient were FP32.
    codes, scale = quantised(row)
    # Python rounds a Fraction half to even.
    assert codes == [round(Fraction(float(weight)) / scale) for weight in row]


@given(rows())
def test_no_weight_is_further_from_its_code_than_half_a_scale_and_no_code_beyond_127(row: Row) -> None:
    codes, scale = quantised(row)
    for weight, code in zip(row, codes, strict=True):
        assert abs(Fraction(float(weight)) - scale * code) <= scale / 2
        assert -127 <= code <= 127


@given(rows())
def test_the_scale_is_the_largest_weight_by_127_rounded_once(row: Row) -> None:
    _, scale = quantised(row)
    largest = max(abs(Fraction(float(weight))) for weight in row)
    if largest == 0:
        assert scale == 1
    elif largest / 127 < Fraction(float(LEAST_SCALE)):
        assert scale == Fraction(2) ** -126
    else:
        assert abs(scale - largest / 127) <= largest / 127 / 2**24


@given(rows())
def test_the_largest_weight_of_a_row_has_the_largest_code(row: Row) -> None:
    codes, scale = quantised(row)
    if scale > Fraction(float(LEAST_SCALE)) and row.any():
        assert abs(codes[int(np.abs(row).argmax())]) == 127


@given(rows())
def test_weights_of_the_other_sign_have_codes_of_the_other_sign(row: Row) -> None:
    codes, scale = quantised(row)
    assert quantised(-row) == ([-code for code in codes], scale)


@given(st.lists(rows().filter(lambda row: len(row) >= 3).map(lambda row: row[:3]), min_size=1, max_size=6))
def test_a_row_knows_nothing_of_the_others(several: list[Row]) -> None:
    codes, scales = quantise_rows(np.stack(several))
    for row, its_codes, its_scale in zip(several, codes, scales, strict=True):
        assert quantised(row) == (its_codes.tolist(), Fraction(float(its_scale)))


def test_a_row_of_zeros_has_codes_of_zero_and_the_scale_one() -> None:
    codes, scales = quantise_rows(np.array([[0, -0.0, 0], [1, 0, -1]], np.float32))
    assert (codes.tolist(), scales[0]) == ([[0, 0, 0], [127, 0, -127]], 1)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_not_finite_is_refused_with_its_row(wrong: float) -> None:
    weights = np.ones((4, 3), np.float32)
    weights[2, 1] = wrong
    with pytest.raises(ValueError, match="row 2"):
        quantise_rows(weights)
