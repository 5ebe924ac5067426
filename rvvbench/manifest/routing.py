"""The routing table: what manifest and model predict, projection x M -> path, and how often. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rvvbench.manifest.models import OneBatch, Projection, Variant
from rvvbench.manifest.shapes import projection_shapes


@dataclass(frozen=True)
class Route:
    """`calls` calls of `projection` with `m` rows take `path`, because of `reason`."""

    projection: Projection
    m: int
    path: Literal["packed", "torch"]
    calls: int
    reason: str


def predicted_routes(config: Mapping[str, Any], variant: Variant, workload: OneBatch) -> list[Route]:
    """Routes of one measured one-batch pass.

    Prefill sees batch x input_len rows, except lm_head, which gets the last token of each prompt only; each of the
    output_len - 1 decode steps sees batch rows.
    """
    routes: list[Route] = []
    decode_steps = workload.output_len - 1
    for shape in projection_shapes(config):
        packed = variant.linear == "packed" and shape.projection in variant.projections
        reason = "packed by the variant" if packed else "the variant leaves it to torch"
        prefill_rows = workload.batch_size * (1 if shape.projection == "lm_head" else workload.input_len)
        rows: Counter[int] = Counter()
        rows[prefill_rows] += shape.count
        if decode_steps:
            rows[workload.batch_size] += shape.count * decode_steps
        for m, calls in sorted(rows.items()):
            routes.append(Route(shape.projection, m, "packed" if packed else "torch", calls, reason))
    return routes
