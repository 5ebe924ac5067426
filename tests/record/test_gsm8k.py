"""What counts as the answer to a question of GSM8K, and how well a share is known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.record.gsm8k import gold_number, last_number
from rvvbench.record.proportion import wilson


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("18", "18"),
        ("The answer is 18.", "18"),
        ("$18.00.", "18"),
        ("so -1,234.50 in all", "-1234.5"),
        ("1,234,567 eggs", "1234567"),
        ("first 3, then 4", "4"),
        ("12,3", "3"),
        ("1,2345", "2345"),
        ("$-5", "-5"),
        ("-$5", "-5"),
        ("\u22125 degrees", "-5"),
        ("x=-7", "-7"),
        ("9-3", "3"),
        ("(9)-3", "3"),
        ("9 - 3", "3"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("007", "7"),
        ("0.50", "0.5"),
        (".5 of it", "0.5"),
        ("1/2", "2"),
        ("5%", "5"),
        ("\\boxed{42}", "42"),
        ("#### 72\n\nQuestion", "72"),
        ("\u0663", None),
        ("no number", None),
        ("$ , . -", None),
        ("", None),
    ],
)
def test_the_last_number_of_a_text_counts_in_one_form(text: str, number: str | None) -> None:
    assert last_number(text) == number


@given(st.integers(-(10**12), 10**12), st.booleans(), st.booleans(), st.sampled_from(["", ".", " dollars.", "!\n"]))
def test_a_whole_number_is_found_however_it_is_written(value: int, commas: bool, dollars: bool, behind: str) -> None:
    digits = f"{abs(value):,}" if commas else str(abs(value))
    written = f"{'-' if value < 0 else ''}{'$' if dollars else ''}{digits}"
    assert last_number(f"There are 3 of them: {written}{behind}") == str(value)


@given(st.text())
def test_any_text_has_a_number_in_its_one_form_or_none(text: str) -> None:
    number = last_number(text)
    assert number is None or (last_number(number) == number and math.isfinite(float(number)))


@given(st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-(10**9), max_value=10**9))
def test_two_texts_have_one_form_exactly_where_they_are_one_number(value: object) -> None:
    assert last_number(f"{value}000") == last_number(f"{value}")
    assert float(last_number(f"{value}") or "nan") == float(str(value))


def test_the_right_answer_is_the_number_behind_the_last_mark() -> None:
    assert gold_number("2 + 3 = <<2+3=5>>5 hens.\n#### 5") == "5"
    assert gold_number("#### 1\n#### 2,000") == "2000"
    for answer in ("5", "5 ####", "#### none", "#### 1e999", "#### 1 or 2", "#### 5 hens"):
        with pytest.raises(ValueError, match='no number behind "####"'):
            gold_number(answer)


# Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_is_that_of_the_literature(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_an_interval_holds_its_share_and_is_mirrored(pair: tuple[int, int]) -> None:
    successes, trials = pair
    low, high = wilson(successes, trials)
    assert 0 <= low <= successes / trials <= high <= 1
    mirrored = wilson(trials - successes, trials)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high), abs=1e-12)


def test_what_is_no_share_has_no_interval() -> None:
    for successes, trials in ((1, 0), (-1, 2), (3, 2)):
        with pytest.raises(ValueError, match="is no share"):
            wilson(successes, trials)
