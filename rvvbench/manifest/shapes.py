"""Shapes of a model's five projections, and what they cost packed. Pure functions of the Hugging Face configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rvvbench.manifest.models import PROJECTIONS, Projection

PACK_ROWS = 32
"""Columns of a packed panel: the layout is [ceil(N/32), K, 32], layout version 1."""

BF16_BYTES, INT8_BYTES = 2, 1


@dataclass(frozen=True)
class ProjectionShape:
    """A linear layer [N, K] that occurs `count` times; `bias` tells whether it has one."""

    projection: Projection
    n: int
    k: int
    count: int
    bias: bool

    def module_bytes(self, element_bytes: int = BF16_BYTES) -> int:
        """Bytes of one packed weight, N padded to 32."""
        padded = -(-self.n // PACK_ROWS) * PACK_ROWS
        return padded * self.k * element_bytes

    @property
    def packed_bytes(self) -> int:
        """Bytes of all `count` packed BF16 weights."""
        return self.module_bytes() * self.count


@dataclass(frozen=True)
class Layers:
    """How many layers there are, and the `heads` and `kv_heads` of each. `qk_norms`: queries and keys are normalised
    head by head.
    """

    count: int
    heads: int
    kv_heads: int
    qk_norms: bool


def layers_of(config: Mapping[str, Any]) -> Layers:
    """The layers of a Llama-like model. Raises as `projection_shapes`."""
    heads = int(config["num_attention_heads"])
    kv_heads = int(config.get("num_key_value_heads") or heads)
    qk_norms = config["architectures"][0] == "Qwen3ForCausalLM"
    return Layers(int(config["num_hidden_layers"]), heads, kv_heads, qk_norms)


def projection_shapes(config: Mapping[str, Any]) -> list[ProjectionShape]:
    """Shapes of qkv_proj, o_proj, gate_up_proj, down_proj and lm_head (fused as SGLang fuses them).

    Raises KeyError when `config` lacks a field that every Llama-like configuration has.
    """
    hidden = int(config["hidden_size"])
    layers = layers_of(config)
    heads, kv_heads = layers.heads, layers.kv_heads
    head = int(config.get("head_dim") or hidden // heads)
    inner = int(config["intermediate_size"])
    qkv_bias = config["architectures"][0] == "Qwen2ForCausalLM" or bool(config.get("attention_bias"))
    o_bias = bool(config.get("attention_bias")) and config["architectures"][0] == "LlamaForCausalLM"
    mlp_bias = bool(config.get("mlp_bias"))
    sizes: dict[Projection, tuple[int, int, int, bool]] = {
        "qkv_proj": ((heads + 2 * kv_heads) * head, hidden, layers.count, qkv_bias),
        "o_proj": (hidden, heads * head, layers.count, o_bias),
        "gate_up_proj": (2 * inner, hidden, layers.count, mlp_bias),
        "down_proj": (hidden, inner, layers.count, mlp_bias),
        "lm_head": (int(config["vocab_size"]), hidden, 1, False),
    }
    return [ProjectionShape(name, *sizes[name]) for name in PROJECTIONS]


def packed_bytes(config: Mapping[str, Any]) -> int:
    """Bytes of all packed projections."""
    return sum(shape.packed_bytes for shape in projection_shapes(config))
