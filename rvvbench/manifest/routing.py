"""The routing table: what manifest and model predict, projection x M -> path, and how often. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rvvbench.manifest.models import OneBatch, Projection, Serving, Variant
from rvvbench.manifest.shapes import projection_shapes

Path = Literal["packed", "torch"]


@dataclass(frozen=True)
class Route:
    """`calls` calls of `projection` with `m` rows take `path`, because of `reason`.

    `calls` is None where they depend on which request arrives when; then the route is one that may be taken.
    """

    projection: Projection
    m: int
    path: Path
    calls: int | None
    reason: str


def path_of(variant: Variant, projection: Projection) -> tuple[Path, str]:
    """The path that the variant sends the projection, and why."""
    if variant.linear == "packed" and projection in variant.projections:
        return "packed", "packed by the variant"
    return "torch", "the variant leaves it to torch"


def predicted_routes(config: Mapping[str, Any], variant: Variant, workload: OneBatch) -> list[Route]:
    """Routes of one measured one-batch pass.

    Prefill sees batch x input_len rows, except lm_head, which gets the last token of each prompt only; each of the
    output_len - 1 decode steps sees batch rows.
    """
    routes: list[Route] = []
    decode_steps = workload.output_len - 1
    for shape in projection_shapes(config):
        path, reason = path_of(variant, shape.projection)
        prefill_rows = workload.batch_size * (1 if shape.projection == "lm_head" else workload.input_len)
        rows: Counter[int] = Counter()
        rows[prefill_rows] += shape.count
        if decode_steps:
            rows[workload.batch_size] += shape.count * decode_steps
        for m, calls in sorted(rows.items()):
            routes.append(Route(shape.projection, m, path, calls, reason))
    return routes


def allowed_routes(config: Mapping[str, Any], variant: Variant, workload: Serving, in_flight: int) -> list[Route]:
    """Routes that a server may take with up to `in_flight` requests at once; how often each is taken depends on which
    request arrives when.

    A prefill takes the prompts of the requests that wait, whole: k x input_len rows for k of them, to lm_head the last
    token of each. A decode step takes one row of every request that is decoding. Both never share a pass
    (SGLang's mixed chunking and chunked prefill are off).
    """
    routes: list[Route] = []
    together = range(1, in_flight + 1)
    for shape in projection_shapes(config):
        path, reason = path_of(variant, shape.projection)
        rows = {k if shape.projection == "lm_head" else k * workload.input_len for k in together}
        if workload.output_len > 1:
            rows.update(together)
        routes += [Route(shape.projection, m, path, None, reason) for m in sorted(rows)]
    return routes
