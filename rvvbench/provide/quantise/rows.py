"""Symmetric INT8 codes of a weight, one scale for each row (output channel).

Every step is one IEEE 754 operation, rounded to nearest, ties to even, or exact: a row has the same codes and the same
scale on every machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ALGORITHM = "rvvbench-w8a8/1"

LARGEST_CODE = 127
LEAST_SCALE = np.float32(2.0**-126)
"""The smallest normal FP32 number. A smaller scale would lose digits, and with them the bound of the error."""

# Added to a float64 below 2^51 in size and taken away again, it leaves the nearest integer, ties to even.
_TO_INTEGER = 1.5 * 2.0**52


def quantise_rows(weights: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Codes [n, k] and scales [n] of `weights` [n, k], which hold BF16 or FP16 numbers.

    `scale = max |w| / 127` of the row, rounded once to FP32, at least `LEAST_SCALE`, and 1 for a row of zeros. A code
    is the integer nearest to `w / scale`, ties to even, so `|w - scale * code| <= scale / 2`. The quotient is rounded
    to float64 first, which changes no code: w has at most 11 significant bits and the scale 24, so a quotient that is
    not half an integer is more than 2^-26 away from one. No code is beyond 127: the scale is at least 1 - 2^-24 of
    max |w| / 127.

    Raises ValueError for a number that is not finite; its text says in which row.
    """
    largest = np.abs(weights).max(axis=1)
    if not np.isfinite(largest).all():
        raise ValueError(f"row {int(np.flatnonzero(~np.isfinite(largest))[0])} has a number that is not finite")
    scales = np.maximum(largest / np.float32(LARGEST_CODE), LEAST_SCALE)
    scales[largest == 0] = 1
    quotients = weights.astype(np.float64)
    quotients /= scales[:, None]
    quotients += _TO_INTEGER
    quotients -= _TO_INTEGER
    return quotients.astype(np.int8), scales
