"""What the logits of one pass say about the tokens that were chosen. Computed after the measured pass, never in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Pass:
    """One forward pass. `token_ids` [batch]; `logits` a tensor [batch, vocabulary], kept until the measured passes
    are over.
    """

    start_ns: int
    end_ns: int
    token_ids: list[int]
    logits: Any


def scores(one: Pass) -> dict[str, list[float]]:
    """`logprobs` [batch]: natural log-probability of each chosen token, by log-softmax in float64; `top2_margin`
    [batch]: the largest logit minus the second largest.
    """
    import torch

    logits = one.logits.to(torch.float64)
    chosen = torch.tensor(one.token_ids, dtype=torch.int64)[:, None]
    logprobs = torch.log_softmax(logits, dim=-1).gather(1, chosen)[:, 0]
    top = torch.topk(logits, 2, dim=-1).values
    return {"logprobs": logprobs.tolist(), "top2_margin": (top[:, 0] - top[:, 1]).tolist()}
