"""The loads of a serving workload, in the order in which one server meets them. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rvvbench.manifest.models import Serving


@dataclass(frozen=True)
class Load:
    """`requests` requests at one concurrency (`mode` "closed") or at one rate ("open": `arrivals`, `rate_per_s`,
    `seed`). `name` is unique in a workload.
    """

    name: str
    mode: Literal["closed", "open"]
    requests: int
    concurrency: int | None = None
    arrivals: Literal["fixed", "poisson"] | None = None
    rate_per_s: float | None = None
    seed: int | None = None

    @property
    def in_flight(self) -> int:
        """Most requests that can be in flight at once. (A workload has no concurrency above its requests.)"""
        return self.requests if self.concurrency is None else self.concurrency


def loads(workload: Serving) -> list[Load]:
    """The measured loads: concurrencies first, then open loops."""
    closed = [Load(f"c{c}", "closed", workload.requests, concurrency=c) for c in workload.concurrency]
    opened = [
        Load(
            f"{one.arrivals}-{one.rate_per_s!r}".removesuffix(".0"),
            "open",
            workload.requests,
            arrivals=one.arrivals,
            rate_per_s=one.rate_per_s,
            seed=one.seed if one.arrivals == "poisson" else None,
        )
        for one in workload.open_loops
    ]
    return closed + opened
