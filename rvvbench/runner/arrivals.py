"""When an open loop sends its requests: decided before the first is sent, whatever the server then does."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Literal

_NS_PER_S = 1e9


@dataclass(frozen=True)
class Arrivals:
    """`rate_per_s` requests per second on average. `fixed`: equal gaps. `poisson`: a Poisson process, whose gaps are
    exponential, drawn from `seed`.
    """

    kind: Literal["fixed", "poisson"]
    rate_per_s: float
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("fixed", "poisson"):
            raise ValueError(f"arrivals {self.kind!r} are not one of fixed, poisson")
        if not (self.rate_per_s > 0 and math.isfinite(self.rate_per_s)):
            raise ValueError(f"a rate of {self.rate_per_s} requests per second")

    def offsets_ns(self, count: int) -> list[int]:
        """When each of `count` requests is due, after the start; the first at once.

        Exponential gaps are drawn by inversion, -ln(1 - u) / rate, because Python keeps `Random.random` the same for
        a seed from version to version, and promises that of no other method.
        """
        if self.kind == "fixed":
            return [round(index * _NS_PER_S / self.rate_per_s) for index in range(count)]
        uniform = random.Random(self.seed)
        offsets, due_s = [], 0.0
        for _ in range(count):
            offsets.append(round(due_s * _NS_PER_S))
            due_s += -math.log(1.0 - uniform.random()) / self.rate_per_s
        return offsets
