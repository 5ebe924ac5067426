"""The attention of real models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rvvbench.kernel_model.cases import CODE_BYTES, ELEMENT_BYTES, SCALE_BYTES, Case
from rvvbench.kernel_model.heads import Heads

DECODE = "decode_attention"
EXTEND = "extend_attention"
DECODE_INT8 = "decode_attention_int8"
EXTEND_INT8 = "extend_attention_int8"
INT8_CACHE = (DECODE_INT8, EXTEND_INT8)
EXTENDS = (EXTEND, EXTEND_INT8)
ATTENTION = (DECODE, EXTEND, *INT8_CACHE)

CONTEXTS = (72, 512, 2048)
NEW_TOKENS = 64
PROMPT = NEW_TOKENS
"""A context that is new altogether."""


def attention(operation: str, kind: str, model: str, heads: Heads, *, context: int, new: int = 1) -> Case:
    """`new` queries and `context` tokens, the new ones among them; a unit is a KV head with its group of query heads.

    Multiply-adds: the products with keys and values that the causal mask leaves. Bytes: keys and values of all tokens
    (new ones from where they come), queries, outputs, and in decode the new keys and values that are stored. Of an
    INT8 cache: codes and scales of the tokens before, and of new ones the elements read and codes and scales written.
    """
    before = context - new
    pairs = new * before + new * (new + 1) // 2
    token = 2 * heads.kv_heads * heads.head
    ends = 2 * new * heads.heads * heads.head
    if operation in INT8_CACHE:
        stored = token * CODE_BYTES + 2 * heads.kv_heads * SCALE_BYTES
        moved = context * stored + (new * token + ends) * ELEMENT_BYTES
    else:
        moved = ELEMENT_BYTES * (context * token + ends + (token if operation == DECODE else 0))
    return Case(
        operation,
        kind,
        model,
        str(heads),
        heads.kv_heads,
        (("kv_heads", 1), ("heads", heads.heads // heads.kv_heads)),
        (("head", heads.head), ("context", context), *((("new", new),) if operation in EXTENDS else ())),
        moved_bytes=moved,
        macs=heads.heads * pairs * 2 * heads.head,
    )


def attentions(operation: str, kind: str, model: str, config: Mapping[str, Any]) -> list[Case]:
    """Every context; extending, also the one without a prefix."""
    heads = Heads.of(config)
    if operation not in EXTENDS:
        return [attention(operation, kind, model, heads, context=context) for context in CONTEXTS]
    contexts = (PROMPT, *CONTEXTS)
    return [attention(operation, kind, model, heads, context=context, new=NEW_TOKENS) for context in contexts]
