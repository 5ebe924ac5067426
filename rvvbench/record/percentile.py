"""Percentiles, and how many samples one needs before it may be printed."""

from __future__ import annotations

import math
from collections.abc import Sequence

CONFIDENCE = 0.95


def samples_needed(percent: int) -> int:
    """Fewest samples that say anything of the upper tail: the smallest n with (percent / 100)^n <= 1 - CONFIDENCE.

    Then the largest of n independent samples is above the true percentile with 95 % confidence; with fewer, the
    percentile may well lie above everything that was seen. 29 for the 90th, 59 for the 95th, 299 for the 99th. Source:
    S. S. Wilks, "Determination of sample sizes for setting tolerance limits", Annals of Mathematical Statistics 12
    (1941), one-sided limits without assumptions on the distribution.

    Raises: ValueError outside 1 to 99.
    """
    if not 1 <= percent <= 99:
        raise ValueError(f"no percentile: {percent}")
    return math.ceil(math.log(1 - CONFIDENCE) / math.log(percent / 100))


def nearest_rank(values: Sequence[float], percent: int) -> float:
    """The smallest value that at least `percent` % of the values do not exceed: always one that was observed.

    Raises: ValueError for no values, or outside 1 to 99.
    """
    if not values or not 1 <= percent <= 99:
        raise ValueError(f"no {percent}th percentile of {len(values)} values")
    rank = -(-len(values) * percent // 100)  # whole numbers: no rounding moves the rank
    return sorted(values)[rank - 1]
