"""Real pools of SGLang, batches of a stand-in, and attention in float64 to hold the backends against."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import torch
from sglang.srt.layers.radix_attention import RadixAttention
from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool, ReqToTokenPool
from sglang.srt.model_executor.forward_batch_info import ForwardMode
from sglang_rvv.attention import RVVAttnBackend
from sglang_rvv.kv_pool import Int8KVPool

Tensor = torch.Tensor

UNIT = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}
"""Half a unit in the last place, relative."""

LAYER, START = 4, 3
"""The layer that is computed, in a pool that begins at START, as in a pipeline."""


@dataclass(frozen=True)
class Kind:
    """Heads, types and arithmetic of an attention layer."""

    heads: int = 8
    kv_heads: int = 2
    head: int = 64
    head_v: int = 64
    dtype: torch.dtype = torch.bfloat16
    int8: bool = False
    scaling: float = 0.125
    cap: float = 0.0

    @property
    def group(self) -> int:
        return self.heads // self.kv_heads


@dataclass
class World:
    """Pools with cached tokens of some requests, at slots in no order."""

    kind: Kind
    runner: Any
    layer: Any
    rows: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)

    @property
    def pool(self) -> Any:
        return self.runner.token_to_kv_pool

    @property
    def table(self) -> Tensor:
        table: Tensor = self.runner.req_to_token_pool.req_to_token
        return table

    def copy(self) -> World:
        """The same state in other memory."""
        pool, requests = copy.copy(self.pool), copy.copy(self.runner.req_to_token_pool)
        for name in ("k_buffer", "v_buffer", "k_scale_buffer", "v_scale_buffer"):
            if hasattr(pool, name):
                setattr(pool, name, [buffer.clone() for buffer in getattr(pool, name)])
        requests.req_to_token = requests.req_to_token.clone()
        runner = SimpleNamespace(**vars(self.runner))
        runner.token_to_kv_pool, runner.req_to_token_pool = pool, requests
        return World(self.kind, runner, copy.copy(self.layer), list(self.rows), list(self.lengths))

    def backend(self) -> RVVAttnBackend:
        return RVVAttnBackend(self.runner)

    def slots(self, sequence: int, length: int | None = None) -> Tensor:
        """Slots of a sequence's tokens."""
        end = self.lengths[sequence] if length is None else length
        return self.table[self.rows[sequence], :end].long()

    def cached(self, slots: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values [tokens, KV heads, head] of the layer in float64, as the cache stands for them."""
        buffers = self.pool.k_buffer[LAYER - START], self.pool.v_buffer[LAYER - START]
        keys, values = (buffer[slots].double() for buffer in buffers)
        if self.kind.int8:
            k_scale, v_scale = self.pool.scale_buffers(LAYER)
            return keys * k_scale[slots].double()[..., None], values * v_scale[slots].double()[..., None]
        return keys, values


def world(kind: Kind, lengths: Sequence[int], new: Sequence[int], seed: int = 0, spare: int = 0) -> World:
    """`lengths` tokens are cached of each request, and slots are there for `new` more of each."""
    torch.manual_seed(seed)
    totals = [old + more for old, more in zip(lengths, new, strict=True)]
    size = sum(totals) + 7
    requests = ReqToTokenPool(len(lengths) + spare, max(totals) + 5, "cpu", False)
    cls = Int8KVPool if kind.int8 else MHATokenToKVPool
    pool = cls(
        size, 1, torch.int8 if kind.int8 else kind.dtype, kind.kv_heads, kind.head, 2, "cpu", False,
        v_head_dim=kind.head_v, start_layer=START, end_layer=START + 1,
    )  # fmt: skip
    config = SimpleNamespace(num_attention_heads=kind.heads)
    runner = SimpleNamespace(
        req_to_token_pool=requests, token_to_kv_pool=pool, model_config=config, tp_size=1, device="cpu"
    )
    layer = RadixAttention(
        kind.heads, kind.head, kind.scaling, kind.kv_heads, LAYER, logit_cap=kind.cap, v_head_dim=kind.head_v
    )
    made = World(kind, runner, layer)
    free = 1 + torch.randperm(size)
    made.rows = (1 + torch.randperm(len(lengths) + spare))[: len(lengths)].tolist()
    # What no request owns must not be read: it would be seen in every result.
    for buffer in (pool.k_buffer[LAYER - START], pool.v_buffer[LAYER - START]):
        buffer.fill_(113 if kind.int8 else float("nan"))
    taken = 0
    for row, old, total in zip(made.rows, lengths, totals, strict=True):
        slots = free[taken : taken + total]
        taken += total
        requests.req_to_token[row, :total] = slots.to(torch.int32)
        store(
            made,
            slots[:old],
            tensor(kind, old, kind.kv_heads, kind.head),
            tensor(kind, old, kind.kv_heads, kind.head_v),
        )
        made.lengths.append(old)
    return made


def tensor(kind: Kind, *shape: int) -> Tensor:
    return torch.randn(*shape).to(kind.dtype)


def store(world: World, slots: Tensor, keys: Tensor, values: Tensor) -> None:
    """Write rows into the layer's cache past everybody's back; INT8 codes are rounded as torch rounds them."""
    buffers = world.pool.k_buffer[LAYER - START], world.pool.v_buffer[LAYER - START]
    for index, (buffer, rows) in enumerate(zip(buffers, (keys, values), strict=True)):
        if world.kind.int8:
            scale = rows.float().abs().amax(-1) / 127
            world.pool.scale_buffers(LAYER)[index][slots] = scale
            rows = torch.round(rows.float() / scale[..., None]).to(torch.int8)
        buffer[slots] = rows


@dataclass
class Batch:
    """New tokens of some sequences, and what SGLang tells a backend of them."""

    forward: Any
    q: Tensor
    k: Tensor
    v: Tensor


def decode(world: World, order: Sequence[int] | None = None) -> Batch:
    """One more token of each sequence, whose slots the table has already."""
    order = list(range(len(world.rows))) if order is None else list(order)
    for sequence in order:
        world.lengths[sequence] += 1
    lengths = [world.lengths[sequence] for sequence in order]
    rows = [world.rows[sequence] for sequence in order]
    forward = SimpleNamespace(
        forward_mode=ForwardMode.DECODE,
        batch_size=len(order),
        req_pool_indices=torch.tensor(rows),
        seq_lens=torch.tensor(lengths),
        out_cache_loc=torch.stack([world.slots(sequence)[-1] for sequence in order]),
        encoder_lens=None,
    )
    return _batch(world.kind, forward, len(order))


def extend(world: World, new: Sequence[int], mode: ForwardMode = ForwardMode.EXTEND) -> Batch:
    """`new` more tokens of every sequence, in one run of tokens."""
    prefixes = list(world.lengths)
    world.lengths = [old + more for old, more in zip(prefixes, new, strict=True)]
    starts = [sum(new[:sequence]) for sequence in range(len(new))]
    forward = SimpleNamespace(
        forward_mode=mode,
        batch_size=len(new),
        req_pool_indices=torch.tensor(world.rows),
        seq_lens=torch.tensor(world.lengths),
        out_cache_loc=torch.cat([world.slots(i)[prefix:] for i, prefix in enumerate(prefixes)]),
        extend_prefix_lens=torch.tensor(prefixes, dtype=torch.int32),
        extend_seq_lens=torch.tensor(list(new), dtype=torch.int32),
        extend_start_loc=torch.tensor(starts, dtype=torch.int32),
        extend_seq_lens_cpu=list(new),
        encoder_lens=None,
    )
    return _batch(world.kind, forward, sum(new))


def _batch(kind: Kind, forward: Any, tokens: int) -> Batch:
    # Query, keys and values are parts of one projection's output, as in a model.
    widths = [kind.heads * kind.head, kind.kv_heads * kind.head, kind.kv_heads * kind.head_v]
    q, k, v = torch.randn(tokens, sum(widths)).to(kind.dtype).split(widths, dim=-1)
    return Batch(forward, q, k.view(-1, kind.kv_heads, kind.head), v.view(-1, kind.kv_heads, kind.head_v))


def run(backend: Any, world: World, batch: Batch, **more: Any) -> Tensor:
    """One layer of a forward pass, through the door that SGLang's models use."""
    backend.init_forward_metadata(batch.forward)
    out: Tensor = backend.forward(batch.q, batch.k, batch.v, world.layer, batch.forward, **more)
    return out


@dataclass
class Exact:
    """Attention in float64 of one sequence's last tokens: result, and what bounds of errors are made of.

    `result` and `spread` are [tokens, heads, head]; `spread` is at least the sum of weights times |value - result|.
    """

    result: Tensor
    spread: Tensor
    largest_score: float
    largest_products: float


def attend(kind: Kind, q: Tensor, keys: Tensor, values: Tensor) -> Exact:
    """q [new, heads, head] are the last of the tokens of keys and values [tokens, KV heads, head]; causal."""
    new, total = q.shape[0], keys.shape[0]
    grouped = q.double().view(new, kind.kv_heads, kind.group, kind.head)
    scores = torch.einsum("qkgd,tkd->kgqt", grouped, keys) * kind.scaling
    # sum |q k| is at most |q| |k|
    products = kind.scaling * float(grouped.norm(dim=-1).max() * keys.norm(dim=-1).max())
    if kind.cap:
        scores = kind.cap * torch.tanh(scores / kind.cap)
    later = torch.arange(total)[None] > torch.arange(total - new, total)[:, None]
    weights = scores.masked_fill(later, float("-inf")).softmax(-1)
    result, magnitude = (
        torch.einsum("kgqt,tkd->qkgd", weights, part).reshape(new, kind.heads, kind.head_v)
        for part in (values, values.abs())
    )
    # |value - result| is at most |value| + |result|.
    return Exact(result, magnitude + result.abs(), float(scores.abs().max()), products)
