"""Which call of a projection a compiled region computes, and the bucket that its rows are padded to. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sglang_rvv.settings import PROJECTIONS

ROW_MAJOR = "row_major"
EXPLICIT_PACKED = "explicit_packed"

SMALL_BUCKETS = (1, 2, 4, 8)
LARGE_BUCKETS = (16, 32, 64, 128)

LEAST_LARGE = 16
"""From as many rows on a batch is not a small one: it needs no small batches to be on, and the head is not compiled."""

HEAD = "lm_head"
BF16 = "bfloat16"


@dataclass(frozen=True)
class Call:
    """`rows` real rows times the weight [N, K] of a projection, in the form `mode`. Types without `torch.`."""

    projection: str
    rows: int
    out_features: int
    in_features: int
    mode: str
    input_type: str = BF16
    weight_type: str = BF16
    device: str = "cpu"
    biased: bool = False


@dataclass(frozen=True)
class Choice:
    """`bucket`: rows of the artifact that computes the call; None: `F.linear` does, for `reason`."""

    bucket: int | None
    reason: str | None = None


Refusal = Callable[[int, int, int], str | None]
"""Why no kernel computes a product of M, N, K; None: one does."""


def buckets(*, small_batch: bool) -> tuple[int, ...]:
    """The rows that artifacts are made for, ascending."""
    return (*SMALL_BUCKETS, *LARGE_BUCKETS) if small_batch else LARGE_BUCKETS


def bucket_of(rows: int, *, small_batch: bool) -> int | None:
    """The smallest bucket that `rows` rows fit into; None where there is none."""
    return next((bucket for bucket in buckets(small_batch=small_batch) if rows <= bucket), None)


def refusal_of_rows(projection: str, rows: int, *, small_batch: bool) -> str | None:
    """Why so many rows of a projection are not compiled; None: they are. By the real rows, not by their bucket."""
    if projection not in PROJECTIONS:
        return "no such projection"
    if rows == 1:
        return None
    if 1 < rows < LEAST_LARGE:
        return None if small_batch else "small batches are off"
    if LEAST_LARGE <= rows <= LARGE_BUCKETS[-1]:
        return "lm_head of 16 rows and more" if projection == HEAD else None
    return f"M not in 1..{LARGE_BUCKETS[-1]}"


def choose(call: Call, *, small_batch: bool, refuses_row_major: Refusal) -> Choice:
    """What computes `call`. A row-major one must also be lowered to the microkernel: with the rows of its bucket."""
    if call.device != "cpu":
        return Choice(None, f"device {call.device}")
    if (call.input_type, call.weight_type) != (BF16, BF16):
        return Choice(None, f"{call.input_type} x {call.weight_type}")
    if call.biased:
        return Choice(None, "bias")
    reason = refusal_of_rows(call.projection, call.rows, small_batch=small_batch)
    if reason is not None:
        return Choice(None, reason)
    bucket = bucket_of(call.rows, small_batch=small_batch)
    assert bucket is not None
    if call.mode == ROW_MAJOR:
        reason = refuses_row_major(bucket, call.out_features, call.in_features)
    return Choice(bucket) if reason is None else Choice(None, reason)
