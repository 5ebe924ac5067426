"""The random stream and the exact number steps of the synthetic checkpoints."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.provide.synthetic import stream


def test_the_words_are_those_of_splitmix64() -> None:
    # The first outputs of the generator that is seeded with 1234567, as its author's reference program prints them.
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert [stream.word(1234567, i) for i in range(5)] == published


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**40), st.integers(1, 50))
def test_lanes_are_the_words_cut_into_sixteen_bits_lowest_first(key: int, first_word: int, count: int) -> None:
    expected = [stream.word(key, first_word + i // 4) >> 16 * (i % 4) & 0xFFFF for i in range(count)]
    assert stream.lanes(key, 4 * first_word, count).tolist() == expected


def test_streams_of_other_names_and_seeds_are_other_streams() -> None:
    keys = {stream.stream_key(seed, name) for seed in range(3) for name in ("a", "b", "1\na")}
    assert len(keys) == 9
    assert stream.stream_key(1, "codes") == 0xADC8D64F0AC91A38


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100))
def test_bf16_rounds_to_the_nearest_and_ties_to_even(value: float) -> None:
    exact = np.array([value], np.float32)
    below = int(exact.view(np.uint32)[0]) >> 16

    def distance(pattern: int) -> Fraction:
        return abs(Fraction(float(stream.from_bf16(np.array([pattern], np.uint16))[0])) - Fraction(value))

    # Towards zero lies the truncated pattern, away from it the next one; of two equally near ones the even wins.
    nearest = min((below, below + 1), key=lambda pattern: (distance(pattern), pattern % 2))
    assert stream.to_bf16(exact)[0] == nearest


@pytest.mark.parametrize(
    ("bits", "pattern"),
    [(0x3F808000, 0x3F80), (0x3F818000, 0x3F82), (0xBF808000, 0xBF80), (0xBF818000, 0xBF82), (0x3F808001, 0x3F81)],
)
def test_bf16_ties_go_to_the_even_pattern(bits: int, pattern: int) -> None:
    assert stream.to_bf16(np.array([bits], np.uint32).view(np.float32))[0] == pattern


@given(st.fractions(min_value=Fraction(1, 10**6), max_value=10**6))
def test_eight_bits_are_exact_in_bf16_and_within_half_a_unit(value: Fraction) -> None:
    rounded = stream.eight_bits(value)
    assert float(stream.from_bf16(stream.to_bf16(np.array([rounded], np.float32)))[0]) == rounded
    assert abs(Fraction(rounded) - value) <= value / 256
    assert stream.eight_bits(-value) == -rounded


def test_a_lane_times_eight_bits_is_exact_in_float32() -> None:
    scale = stream.eight_bits(Fraction(255, 2**20))
    extremes = np.array([-32768, -32767, 32767, 12345], np.int16)
    products = extremes * np.float32(scale)
    assert [Fraction(float(p)) for p in products] == [int(n) * Fraction(scale) for n in extremes]


def test_the_scaled_lanes_have_the_standard_deviation_that_was_asked_for() -> None:
    noise = stream.signed(stream.lanes(stream.stream_key(1, "x"), 0, 1 << 18))
    values = noise * np.float32(stream.lane_scale(Fraction(1, 3)))
    assert abs(values.std() - 1 / 3) < 0.003
    assert abs(values.mean()) < 0.003
