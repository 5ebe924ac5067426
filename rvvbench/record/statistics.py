"""What several fresh processes say together."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Summary:
    """Median and extremes of `n` values, all in the unit of the values."""

    median: float
    min: float
    max: float
    n: int

    @property
    def relative_range(self) -> float | None:
        """(max - min) / median, or None where one value or a zero median leaves it without meaning."""
        if self.n < 2 or self.median == 0:
            return None
        return (self.max - self.min) / self.median


def summarise(values: Sequence[float]) -> Summary:
    """Summary of at least one value; the median of an even number is the mean of the middle two.

    Raises: ValueError when there is no value.
    """
    if not values:
        raise ValueError("no value to summarise")
    return Summary(
        median=float(statistics.median(values)), min=float(min(values)), max=float(max(values)), n=len(values)
    )
