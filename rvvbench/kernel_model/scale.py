"""Counting a few units of a case and saying what all of them would be, where that is exact."""

from __future__ import annotations

from collections.abc import Mapping

from rvvbench.kernel_model.trace import Step

COUNTED_UNITS = (1, 2, 3)
"""Three sizes: two give the growth per unit, the third shows whether it is constant."""


def units_to_count(units: int) -> tuple[int, ...]:
    """The sizes at which a case of `units` units is counted."""
    return (units,) if units <= COUNTED_UNITS[-1] else COUNTED_UNITS


def scaled(counted: Mapping[int, Mapping[Step, int]], units: int) -> dict[Step, int] | None:
    """Steps of `units` units from those of `COUNTED_UNITS`, or None where they do not grow evenly.

    Every unit beyond the first must add the same number of executions of every step from block to block; where the
    loop over units is the outermost one, so will every further unit. A loop that takes several units at a time shows as
    uneven growth, unless it takes so many that all counted sizes are within one round.
    """
    first, second, third = (counted[n] for n in COUNTED_UNITS)
    steps = {}
    for step in first.keys() | second.keys() | third.keys():
        growth = second.get(step, 0) - first.get(step, 0)
        if third.get(step, 0) - second.get(step, 0) != growth:
            return None
        steps[step] = first.get(step, 0) + growth * (units - COUNTED_UNITS[0])
    return {step: count for step, count in sorted(steps.items()) if count}
