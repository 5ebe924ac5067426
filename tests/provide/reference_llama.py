"""Llama, Qwen2 and Qwen3 in numpy: float64 as the reference, and BF16 as three correct implementations might round.

Batched and cached like an engine: `Model.forward` takes [batch, tokens] ids and extends the key-value cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def read_safetensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """Every BF16 tensor of a file as float32, read with nothing but the format's description."""
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        patterns = np.frombuffer(raw, "<u2", (end - begin) // 2, 8 + length + begin)
        tensors[name] = (patterns.astype(np.uint32) << np.uint32(16)).view(np.float32).reshape(entry["shape"])
    return tensors


def exact(x: Array) -> Array:
    return x


def bf16(x: Array) -> Array:
    """Round float32 to BF16, nearest even, kept as float32."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + (((bits >> 16) & 1) + 0x7FFF)) & np.uint32(0xFFFF0000)).view(np.float32)


@dataclass(frozen=True)
class Rounding:
    """Where an implementation rounds. `cast` rounds to the storage type; `accumulate` multiplies [.., K] by [N, K]."""

    name: str
    dtype: type
    cast: Callable[[Array], Array]
    accumulate: Callable[[Array, Array], Array]
    fused_norm: bool = False
    """Norm in full precision with its weight, the residual sum unrounded before it; else rounded before the weight."""
    fused_attention: bool = False
    """Scores and probabilities in full precision; else rounded after each step."""
    fused_mlp: bool = False
    wide_logits: bool = False
    rounded_rope: bool = False


def _plain(x: Array, w: Array) -> Array:
    return np.asarray(x @ w.T)


def _backwards(x: Array, w: Array) -> Array:
    """K in pieces of 64, the last one first."""
    return _pieces(x, w, list(reversed(range(0, x.shape[-1], 64))), 64)


def _blocks(x: Array, w: Array) -> Array:
    """K in eight blocks, one after another: a split-K kernel."""
    step = -(-x.shape[-1] // 8)
    return _pieces(x, w, list(range(0, x.shape[-1], step)), step)


def _pieces(x: Array, w: Array, starts: list[int], width: int) -> Array:
    total = np.zeros((*x.shape[:-1], w.shape[0]), x.dtype)
    for start in starts:
        total += x[..., start : start + width] @ w[:, start : start + width].T
    return total


FLOAT64 = Rounding("float64", np.float64, exact, _plain, True, True, True, True)
EAGER = Rounding("bf16-eager", np.float32, bf16, _plain, rounded_rope=True)
FUSED = Rounding("bf16-fused", np.float32, bf16, _backwards, True, True, True, True)
MIXED = Rounding("bf16-mixed", np.float32, bf16, _blocks, True, False, False, False)
VARIANTS = (EAGER, FUSED, MIXED)


@dataclass
class Model:
    """A checkpoint computed with one `Rounding`. `skip` names projections whose output becomes zero."""

    config: Mapping[str, Any]
    weights: Mapping[str, Array]
    how: Rounding
    skip: frozenset[str] = frozenset()
    cache: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.weights = {name: w.astype(self.how.dtype, copy=False) for name, w in self.weights.items()}

    def linear(self, x: Array, name: str) -> Array:
        y = self.how.accumulate(x, self.weights[name + ".weight"])
        if name in self.skip:
            y = np.zeros_like(y)
        bias = self.weights.get(name + ".bias")
        return self.how.cast(y if bias is None else y + bias)

    def norm(self, x: Array, name: str) -> Array:
        how, weight = self.how, self.weights[name + ".weight"]
        scaled = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["rms_norm_eps"])
        return how.cast(scaled * weight) if how.fused_norm else how.cast(how.cast(scaled) * weight)

    def rope(self, x: Array, positions: Array) -> Array:
        """Rotate [batch, tokens, heads, head_dim] in pairs (i, i + head_dim / 2)."""
        half = x.shape[-1] // 2
        frequency = float(self.config["rope_theta"]) ** (-np.arange(half) / half)
        scaling = self.config.get("rope_scaling")
        if scaling:
            low, high, factor = scaling["low_freq_factor"], scaling["high_freq_factor"], scaling["factor"]
            turns = scaling["original_max_position_embeddings"] * frequency / (2 * np.pi)
            smooth = np.clip((turns - low) / (high - low), 0, 1)
            frequency = frequency * (smooth + (1 - smooth) / factor)
        angle = positions[:, None] * frequency
        cos, sin = np.cos(angle)[:, None, :].astype(x.dtype), np.sin(angle)[:, None, :].astype(x.dtype)
        if self.how.rounded_rope:
            cos, sin = bf16(cos), bf16(sin)
        a, b = x[..., :half], x[..., half:]
        return self.how.cast(np.concatenate([a * cos - b * sin, b * cos + a * sin], -1))

    def attention(self, q: Array, k: Array, v: Array) -> Array:
        """[batch, heads, tokens, head_dim] against all cached keys, causal."""
        how = self.how
        round_ = exact if how.fused_attention else how.cast
        scores = round_(round_(q @ k.swapaxes(-1, -2)) * np.asarray(q.shape[-1] ** -0.5, q.dtype))
        past = k.shape[-2] - q.shape[-2]
        allowed = np.arange(k.shape[-2]) <= past + np.arange(q.shape[-2])[:, None]
        scores = np.where(allowed, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = round_(weights / weights.sum(-1, keepdims=True))
        return how.cast(weights @ v)

    def forward(self, ids: Array) -> Array:
        """Logits [batch, vocabulary] after the last of [batch, tokens] ids."""
        how, config = self.how, self.config
        heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        head_dim = config.get("head_dim") or config["hidden_size"] // heads
        past = self.cache[0][0].shape[2] if self.cache else 0
        positions = np.arange(past, past + ids.shape[1])
        hidden = self.weights["model.embed_tokens.weight"][ids]
        for layer in range(config["num_hidden_layers"]):
            name = f"model.layers.{layer}."
            x = self.norm(hidden, name + "input_layernorm")
            shape = (*ids.shape, -1, head_dim)
            q, k, v = (self.linear(x, f"{name}self_attn.{p}_proj").reshape(shape) for p in "qkv")
            if f"{name}self_attn.q_norm.weight" in self.weights:
                q, k = self.norm(q, name + "self_attn.q_norm"), self.norm(k, name + "self_attn.k_norm")
            q, k = self.rope(q, positions), self.rope(k, positions)
            q, k, v = (t.swapaxes(1, 2) for t in (q, k, v))
            if layer in self.cache:
                k, v = (np.concatenate([old, new], 2) for old, new in zip(self.cache[layer], (k, v), strict=True))
            self.cache[layer] = (k, v)
            group = heads // kv_heads
            mixed = self.attention(q, np.repeat(k, group, 1), np.repeat(v, group, 1))
            update = self.linear(mixed.swapaxes(1, 2).reshape(*ids.shape, -1), name + "self_attn.o_proj")
            hidden = hidden + update if how.fused_norm else how.cast(hidden + update)
            x = self.norm(hidden, name + "post_attention_layernorm")
            hidden = how.cast(hidden)
            gate, up = self.linear(x, name + "mlp.gate_proj"), self.linear(x, name + "mlp.up_proj")
            silu = gate / (1 + np.exp(-gate))
            product = how.cast(silu * up) if how.fused_mlp else how.cast(how.cast(silu) * up)
            update = self.linear(product, name + "mlp.down_proj")
            hidden = how.cast(hidden + update)
        last = self.norm(hidden[:, -1:], "model.norm")[:, 0]
        head = "lm_head.weight" if "lm_head.weight" in self.weights else "model.embed_tokens.weight"
        logits = how.accumulate(last, self.weights[head])
        if "lm_head" in self.skip:
            logits = np.zeros_like(logits)
        return logits if how.wide_logits else how.cast(logits)


def generate(model: Model, prompts: Array, count: int, forced: Array | None = None) -> tuple[Array, Array]:
    """Greedy tokens [batch, count], logits [batch, count, vocabulary]; `forced` tokens are fed instead."""
    model.cache.clear()
    ids, tokens, logits = prompts, [], []
    for step in range(count):
        logits.append(model.forward(ids))
        tokens.append(logits[-1].argmax(-1))
        ids = (tokens[-1] if forced is None else forced[:, step])[:, None]
    return np.stack(tokens, 1), np.stack(logits, 1)
