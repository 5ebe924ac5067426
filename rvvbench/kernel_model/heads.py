"""The heads of a model's attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Heads:
    """`heads` of queries in `kv_heads` groups, each of `head` elements."""

    heads: int
    kv_heads: int
    head: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Heads:
        """Those of a Hugging Face configuration."""
        heads = int(config["num_attention_heads"])
        return cls(
            heads,
            int(config.get("num_key_value_heads") or heads),
            int(config.get("head_dim") or int(config["hidden_size"]) // heads),
        )

    def __str__(self) -> str:
        return f"{self.heads} heads, {self.kv_heads} KV heads, head {self.head}"
