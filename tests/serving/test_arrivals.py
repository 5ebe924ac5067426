"""When an open loop sends."""

from __future__ import annotations

import statistics
from itertools import pairwise

import pytest

from rvvbench.runner.arrivals import Arrivals


def test_a_fixed_rate_has_equal_gaps_and_begins_at_once() -> None:
    assert Arrivals("fixed", 4.0).offsets_ns(3) == [0, 250_000_000, 500_000_000]


def test_poisson_arrivals_are_decided_by_the_seed() -> None:
    one = Arrivals("poisson", 2.0, seed=1)
    assert one.offsets_ns(20) == one.offsets_ns(20)
    assert one.offsets_ns(20) != Arrivals("poisson", 2.0, seed=2).offsets_ns(20)
    assert one.offsets_ns(5) == one.offsets_ns(20)[:5]
    assert one.offsets_ns(3) == [0, 72_145_532, 1_012_223_665]


def test_poisson_gaps_have_the_mean_and_the_deviation_of_an_exponential() -> None:
    offsets = Arrivals("poisson", 5.0, seed=3).offsets_ns(20_001)
    gaps = [(later - earlier) / 1e9 for earlier, later in pairwise(offsets)]
    assert statistics.fmean(gaps) == pytest.approx(0.2, rel=0.03)
    assert statistics.stdev(gaps) == pytest.approx(0.2, rel=0.03)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("inf"), float("nan")])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="a rate of"):
        Arrivals("fixed", rate)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="not one of"):
        Arrivals("bursts", 1.0)  # type: ignore[arg-type]
