"""Percentiles, and when there are too few samples for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rvvbench.record.percentile import nearest_rank, samples_needed


@pytest.mark.parametrize(("percent", "samples"), [(50, 5), (90, 29), (95, 59), (99, 299)])
def test_the_samples_that_a_percentile_needs_are_those_of_wilks(percent: int, samples: int) -> None:
    assert samples_needed(percent) == samples
    assert (percent / 100) ** samples <= 0.05 < (percent / 100) ** (samples - 1)


def test_the_nearest_rank_is_a_value_that_was_observed() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [nearest_rank(values, percent) for percent in (1, 50, 90, 95, 99)] == [1, 50, 90, 95, 99]
    assert nearest_rank([*values, 1000.0], 99) == 100.0


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.integers(1, 99))
def test_at_least_the_share_of_values_is_at_or_below(values: list[float], percent: int) -> None:
    found = nearest_rank(values, percent)
    assert 100 * sum(value <= found for value in values) >= percent * len(values)
    assert 100 * sum(value < found for value in values) < percent * len(values)


@pytest.mark.parametrize("percent", [0, 100])
def test_what_is_no_percentile_is_refused(percent: int) -> None:
    with pytest.raises(ValueError):
        samples_needed(percent)
    with pytest.raises(ValueError):
        nearest_rank([1.0], percent)
