"""Counting a few units of a case and saying what all of them would be, where that is exact."""

from __future__ import annotations

from collections.abc import Mapping

from rvvbench.kernel_model.trace import Step

COUNTED_UNITS = (1, 2, 3)
"""Three sizes: two give the growth per unit, the third shows whether it is constant."""

LARGE_UNIT_MACS = 50_000_000
"""From here on a third size is not counted: it would be half of the work. Such units are KV heads of extend attention
at a context of 2048, whose kernels show even growth at smaller contexts, where all three sizes are counted."""


def units_to_count(units: int, unit_macs: int = 0) -> tuple[int, ...]:
    """The sizes at which a case of `units` units, each of `unit_macs` multiply-adds, is counted."""
    sizes = COUNTED_UNITS[:2] if unit_macs >= LARGE_UNIT_MACS else COUNTED_UNITS
    return (units,) if units <= sizes[-1] else sizes


def scaled(counted: Mapping[int, Mapping[Step, int]], units: int) -> dict[Step, int] | None:
    """Steps of `units` units from those of one, two and, where it was counted, three; None where growth is not even.

    Every unit beyond the first must add the same number of executions of every step from block to block; where the
    loop over units is the outermost one, so will every further unit. A loop that takes several units at a time shows as
    uneven growth, unless it takes so many that all counted sizes are within one round.
    """
    first, second, *third = (counted[size] for size in sorted(counted))
    steps = {}
    for step in {name for one in (first, second, *third) for name in one}:
        growth = second.get(step, 0) - first.get(step, 0)
        if growth < 0 or any(one.get(step, 0) - second.get(step, 0) != growth for one in third):
            return None
        steps[step] = first.get(step, 0) + growth * (units - COUNTED_UNITS[0])
    return {step: count for step, count in sorted(steps.items()) if count}
