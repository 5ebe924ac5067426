"""How well a share is known from so many trials."""

from __future__ import annotations

import math

Z_95 = 1.959963984540054
"""The normal distribution's 97.5 % quantile."""


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share, 0 to 1 (Wilson 1927, without correction): it holds for few trials and near 0 and 1
    too. Raises ValueError unless 0 <= successes <= trials and there is a trial.
    """
    if not 0 <= successes <= trials or trials < 1:
        raise ValueError(f"{successes} of {trials} is no share")
    share, square = successes / trials, Z_95 * Z_95
    centre = (share + square / (2 * trials)) / (1 + square / trials)
    half = Z_95 / (1 + square / trials) * math.sqrt(share * (1 - share) / trials + square / (4 * trials * trials))
    # At the ends the interval is closed, whatever the rounding.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return low, high
