from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.record.statistics import Summary, summarise


def test_the_median_of_an_even_number_is_the_mean_of_the_middle_two() -> None:
    assert summarise([4.0, 1.0, 3.0, 10.0]) == Summary(median=3.5, min=1.0, max=10.0, n=4)


def test_one_value_has_no_range() -> None:
    assert summarise([2.0]) == Summary(2.0, 2.0, 2.0, 1)
    assert summarise([2.0]).relative_range is None
    assert summarise([2.0, 3.0]).relative_range == 0.4


def test_no_value_is_refused() -> None:
    with pytest.raises(ValueError, match="no value"):
        summarise([])


@given(st.lists(st.floats(-1e9, 1e9), min_size=1))
def test_order_does_not_matter_and_the_median_lies_between_the_extremes(values: list[float]) -> None:
    shuffled = sorted(values)
    assert summarise(values) == summarise(shuffled)
    summary = summarise(values)
    assert summary.min <= summary.median <= summary.max
