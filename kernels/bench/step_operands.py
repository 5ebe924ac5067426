"""Weights, KV cache and indices of one decode step of one sequence, the same values in BF16 and in INT8.

Every number is a code of INT8 times a power of two, so that both types hold it exactly: two ways to compute the step
differ by what they round on the way, never by their weights. They are made without torch, whose code may be logged.
"""

from __future__ import annotations

import math
import random
from array import array
from dataclasses import dataclass

import torch

PERIOD = 100_003
"""A prime: the values repeat so far behind each other that no two rows of a weight are the same."""

CODES_PER_SIGMA = 32
"""Codes are normally distributed, cut off at +-127."""


@dataclass(frozen=True)
class Shape:
    """What a model's configuration says of the operators of a step."""

    layers: int
    hidden: int
    inner: int
    heads: int
    kv_heads: int
    head: int
    vocabulary: int
    eps: float
    head_norms: bool
    tied: bool
    biased: list[str]
    """Projections with a bias."""


@dataclass(frozen=True)
class Linear:
    """A weight [N, K] in BF16, the same as `codes` [N, K] times `scales` [N], and a bias [N] or None."""

    weight: torch.Tensor
    codes: torch.Tensor
    scales: torch.Tensor
    bias: torch.Tensor | None


@dataclass(frozen=True)
class Layer:
    """Linears by the names of their projections; norms of hidden states, and of heads where the model has these."""

    linears: dict[str, Linear]
    input_norm: torch.Tensor
    post_attention_norm: torch.Tensor
    query_norm: torch.Tensor | None
    key_norm: torch.Tensor | None
    keys: torch.Tensor
    values: torch.Tensor
    """The cache, codes [slots, KV heads, head]; `CACHE_SCALE` is the scale of every row."""


@dataclass(frozen=True)
class Operands:
    """A model and one sequence that has `context` tokens with the newest."""

    shape: Shape
    layers: list[Layer]
    final_norm: torch.Tensor
    embedding: torch.Tensor
    head: Linear
    cos_sin: torch.Tensor
    """Of each position the cosines, then the sines, [context, head]."""
    token: torch.Tensor
    positions: torch.Tensor
    slot: torch.Tensor
    """Where the newest token's keys and values go in the cache, [1]."""
    req_to_token: torch.Tensor
    request: torch.Tensor
    lengths: torch.Tensor


CACHE_SCALE = 2.0**-5
"""Keys and values have a standard deviation of one."""


class Codes:
    """Tensors of values that follow each other in one long random sequence, as far as it is asked for."""

    def __init__(self, seed: int) -> None:
        numbers = random.Random(seed)
        self.codes = [max(-127, min(127, round(numbers.gauss(0.0, CODES_PER_SIGMA)))) for _ in range(PERIOD)]
        self.begin = 0

    def next(self, *shape: int, scale: float, offset: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
        """The next ones: `offset` + code * `scale` in BF16, and the codes in INT8."""
        count = math.prod(shape)
        floats = array("f", (offset + code * scale for code in self.codes)).tobytes()
        halves = bytearray(2 * PERIOD)
        halves[0::2], halves[1::2] = floats[2::4], floats[3::4]
        codes = array("b", self.codes).tobytes()
        begin, self.begin = self.begin, (self.begin + count) % PERIOD
        return (
            torch.frombuffer(_stretch(halves, 2, begin, count), dtype=torch.bfloat16).view(shape),
            torch.frombuffer(_stretch(codes, 1, begin, count), dtype=torch.int8).view(shape),
        )


def _stretch(values: bytes | bytearray, width: int, begin: int, count: int) -> bytearray:
    """`count` elements of `width` bytes from element `begin` on, over and over."""
    rounds = -(-(begin + count) // PERIOD)
    return bytearray(values * rounds)[width * begin : width * (begin + count)]


def operands(shape: Shape, context: int, seed: int) -> Operands:
    """Random ones. `context` counts the newest token."""
    codes = Codes(seed)
    heads, kv_heads = shape.heads * shape.head, shape.kv_heads * shape.head
    sizes = {
        "qkv_proj": (heads + 2 * kv_heads, shape.hidden),
        "o_proj": (shape.hidden, heads),
        "gate_up_proj": (2 * shape.inner, shape.hidden),
        "down_proj": (shape.hidden, shape.inner),
    }
    embedding = linear(codes, shape.vocabulary, shape.hidden, biased=False, sigma=1.0)
    layers = [
        Layer(
            linears={name: linear(codes, n, k, biased=name in shape.biased) for name, (n, k) in sizes.items()},
            input_norm=norm(codes, shape.hidden),
            post_attention_norm=norm(codes, shape.hidden),
            query_norm=norm(codes, shape.head) if shape.head_norms else None,
            key_norm=norm(codes, shape.head) if shape.head_norms else None,
            keys=codes.next(context + 1, shape.kv_heads, shape.head, scale=CACHE_SCALE)[1],
            values=codes.next(context + 1, shape.kv_heads, shape.head, scale=CACHE_SCALE)[1],
        )
        for _ in range(shape.layers)
    ]
    return Operands(
        shape=shape,
        layers=layers,
        final_norm=norm(codes, shape.hidden),
        embedding=embedding.weight,
        head=embedding if shape.tied else linear(codes, shape.vocabulary, shape.hidden, biased=False),
        cos_sin=cosines_and_sines(context, shape.head),
        token=torch.tensor([shape.vocabulary // 3]),
        positions=torch.tensor([context - 1]),
        # SGLang's slots begin at 1: slot 0 takes what nobody reads.
        slot=torch.tensor([context]),
        req_to_token=torch.tensor([list(range(1, context + 1))], dtype=torch.int32),
        request=torch.tensor([0]),
        lengths=torch.tensor([context]),
    )


def linear(codes: Codes, n: int, k: int, *, biased: bool, sigma: float | None = None) -> Linear:
    """Weights of a standard deviation of about `sigma`, without it such that outputs are about as large as inputs."""
    scale = 2.0 ** round(math.log2((sigma or k**-0.5) / CODES_PER_SIGMA))
    weight, integers = codes.next(n, k, scale=scale)
    bias = codes.next(n, scale=CACHE_SCALE / 8)[0] if biased else None
    return Linear(weight, integers, torch.frombuffer(array("f", [scale] * n), dtype=torch.float32), bias)


def norm(codes: Codes, n: int) -> torch.Tensor:
    """Weights of about one, [n]."""
    return codes.next(n, scale=2.0**-8, offset=1.0)[0]


def cosines_and_sines(positions: int, head: int, base: float = 10_000.0) -> torch.Tensor:
    """The table of a rotary embedding, [positions, head] in BF16."""
    frequencies = [base ** (-2 * pair / head) for pair in range(head // 2)]
    rows = [
        [turn(position * frequency) for turn in (math.cos, math.sin) for frequency in frequencies]
        for position in range(positions)
    ]
    return torch.tensor(rows).to(torch.bfloat16)
