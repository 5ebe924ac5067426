"""The samples that a record keeps of a run: as few as say the same about what was measured as all of them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rvvbench.observe.conditions import Conditions
from rvvbench.observe.moment import slows_cpus
from rvvbench.observe.stretch import Look, Stretch, Window, stretch_of

EVENLY = 24
"""About so many samples, evenly over the stretch, are kept besides those that a finding rests on: at 1 s each, all of
a short measurement, and of a long one enough to follow its temperature."""


def enclosing(
    before: Conditions, after: Conditions, samples: Sequence[Mapping[str, Any]], window: Window | None
) -> list[dict[str, Any]]:
    """Of `samples` those that enclose `window` (of all, where it is None), with what the sampler said of itself.

    `assess` over them finds what it finds over all. Every reason that a left-out sample told moves into the next one
    that is kept, since it holds for that too.
    """
    kept = set(_kept(stretch_of(before, after, samples, window)))
    if not kept:  # the window lies between two looks that are no samples; that there were samples must still be seen
        kept = set([at for at, sample in enumerate(samples) if sample.get("event") == "sample"][:1])
    found = []
    told: dict[str, Any] = {}
    for at, sample in enumerate(samples):
        if sample.get("event") in ("sampler_start", "sampler_end"):
            found.append(dict(sample))
        if sample.get("event") == "sample":
            told |= sample.get("reasons", {})
            if at in kept:
                found.append({**sample, **({"reasons": told} if told else {})})
                told = {}
    return found


def _kept(stretch: Stretch) -> Iterator[int]:
    """Places of the samples that `Stretch` and `figures` look at one by one, and of some more, evenly."""
    looks = stretch.looks
    every = math.ceil(len(looks) / EVENLY)
    hottest = max(looks, key=_highest)
    timed = stretch.with_cpu_times
    cooled = [look for look in looks if look.conditions.cooling is not None]
    needed = [*looks[::every], looks[-1], hottest, *timed[:1], *timed[-1:], *cooled[:1], *filter(_slowed, looks)]
    yield from (look.sample for look in needed if look.sample is not None)


def _highest(look: Look) -> float:
    return max((look.conditions.temperature_millicelsius or {}).values(), default=-math.inf)


def _slowed(look: Look) -> bool:
    return any(slows_cpus(device) for device in (look.conditions.cooling or {}).values())
