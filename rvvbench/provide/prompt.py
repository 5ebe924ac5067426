"""Prompts as token ids, seeded: what a benchmark feeds a model when the words do not matter.

Plain integers only, from the random stream of the synthetic checkpoints (`provide/synthetic/stream.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rvvbench.errors import UsageError


def seeded_token_ids(
    seed: int, index: int, length: int, vocab_size: int, special_ids: Collection[int] = ()
) -> list[int]:
    """`length` token ids of prompt number `index` under `seed`, uniform over the vocabulary without `special_ids`.

    Each prompt has a stream of its own, so that prompts of different `index` (the warm-up and the measured ones)
    differ, and the ids of a longer prompt begin with those of a shorter one. Raises `UsageError` where no id is left to
    draw.
    """
    from rvvbench.provide.synthetic.stream import stream_key, word

    barred = sorted({i for i in special_ids if 0 <= i < vocab_size})
    allowed = vocab_size - len(barred)
    if allowed <= 0 or length < 0:
        raise UsageError(
            f"no prompt of {length} tokens from a vocabulary of {vocab_size} without {len(barred)} special ids"
        )
    key = stream_key(seed, f"prompt {index}")
    ids = []
    for position in range(length):
        token = (word(key, position) >> 32) * allowed >> 32
        for special in barred:
            if token >= special:
                token += 1
        ids.append(token)
    return ids


def special_ids(config: Mapping[str, Any]) -> frozenset[int]:
    """The special token ids that a config.json names: beginning, end (one or a list) and padding."""
    from rvvbench.provide.synthetic.architecture import token_ids

    return frozenset(
        i for field in ("bos_token_id", "eos_token_id", "pad_token_id") for i in token_ids(config.get(field))
    )
