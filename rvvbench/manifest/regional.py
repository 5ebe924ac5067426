"""Which calls of a projection a compiled region computes, and the bucket of rows that its artifact is made for. Pure.

The regional gate decides by the real rows of a call, the lowering gate by the product that the artifact computes. This
is the harness's own statement of both: the plugin has its copy, and a run holds the two against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rvvbench.manifest.models import PROJECTIONS, Projection, Variant
from rvvbench.manifest.shapes import ProjectionShape

SMALL_BUCKETS = (1, 2, 4, 8)
LARGE_BUCKETS = (16, 32, 64, 128)
MOST_ROWS = LARGE_BUCKETS[-1]
SMALL_ROWS = range(2, LARGE_BUCKETS[0])
"""A small batch. One row is none: it is compiled with and without them."""

LEAST_N = LEAST_K = 1024
LEAST_WORK = 1_000_000
"""Of M x N x K multiplications, for the row-major lowering."""

Mode = Literal["explicit_packed", "row_major"]
RegionPath = Literal["inductor_packed", "inductor_row_major"]
PATHS: dict[Mode, RegionPath] = {"explicit_packed": "inductor_packed", "row_major": "inductor_row_major"}


@dataclass(frozen=True)
class Region:
    """What computes a call: the artifact of `bucket` rows, or `F.linear` (None); and why."""

    bucket: int | None
    reason: str


@dataclass(frozen=True)
class Artifact:
    """A compiled callable: a projection of [out_features, in_features] at `bucket` rows."""

    projection: Projection
    bucket: int
    out_features: int
    in_features: int
    mode: Mode

    @property
    def name(self) -> str:
        """`qkv_proj 1536x1024 M=4 explicit_packed`."""
        return f"{self.projection} {self.out_features}x{self.in_features} M={self.bucket} {self.mode}"


def buckets(*, small_batch: bool) -> tuple[int, ...]:
    """The rows that artifacts are made for, ascending."""
    return (*SMALL_BUCKETS, *LARGE_BUCKETS) if small_batch else LARGE_BUCKETS


def mode_of(variant: Variant) -> Mode:
    """The form of the weights that the artifacts of `variant` read."""
    return "explicit_packed" if variant.packed_weight_mode == "explicit" else "row_major"


def region(shape: ProjectionShape, m: int, variant: Variant) -> Region:
    """What computes `m` rows of a projection, in a variant that compiles regions. BF16 on the CPU."""
    small_batch = bool(variant.small_batch)
    refused = "it has a bias" if shape.bias else _refusal_of_rows(shape.projection, m, small_batch=small_batch)
    if refused is not None:
        return Region(None, refused)
    bucket = next(rows for rows in buckets(small_batch=small_batch) if m <= rows)
    mode = mode_of(variant)
    refused = _refusal_of_lowering(bucket, shape) if mode == "row_major" else None
    if refused is not None:
        return Region(None, refused)
    return Region(bucket, "an artifact of its rows" if bucket == m else f"padded to {bucket} rows")


def artifact(shape: ProjectionShape, bucket: int, variant: Variant) -> Artifact:
    """The artifact of a projection at `bucket` rows."""
    return Artifact(shape.projection, bucket, shape.n, shape.k, mode_of(variant))


def _refusal_of_rows(projection: Projection, m: int, *, small_batch: bool) -> str | None:
    assert projection in PROJECTIONS and m >= 1
    if m in SMALL_ROWS and not small_batch:
        return "a small batch, which the variant leaves to F.linear"
    if m >= LARGE_BUCKETS[0] and projection == "lm_head":
        return f"lm_head of {LARGE_BUCKETS[0]} rows or more"
    return f"more than {MOST_ROWS} rows" if m > MOST_ROWS else None


def _refusal_of_lowering(m: int, shape: ProjectionShape) -> str | None:
    if shape.n < LEAST_N:
        return f"N {shape.n} below {LEAST_N}"
    if shape.k < LEAST_K:
        return f"K {shape.k} below {LEAST_K}"
    return f"M x N x K below {LEAST_WORK}" if m * shape.n * shape.k < LEAST_WORK else None
