"""The random stream of the synthetic checkpoints, and the exact steps from its integers to BF16 numbers.

A stream is named: its key is the first eight bytes (little endian) of SHA-256 over "rvvbench-synthetic/1", the seed and
the name. Word i of the stream is output i of SplitMix64 started at that key (Steele, Lea, Flood: "Fast splittable
pseudorandom number generators", OOPSLA 2014), which needs no state: `mix(key + (i + 1) * GAMMA)`, all modulo 2^64. A
word holds four signed 16-bit lanes, lowest bits first; element e of a tensor is lane e mod 4 of word e div 4.

Only integer operations, and floating-point operations whose result is exact, lie between a name and the bits of a
weight.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

ALGORITHM = "rvvbench-synthetic/1"
GAMMA = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1
LANES_PER_WORD = 4


def stream_key(seed: int, name: str) -> int:
    """Start of the stream `name` of the checkpoint `seed`: an unsigned 64-bit integer."""
    text = f"{ALGORITHM}\n{seed}\n{name}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little")


def word(key: int, index: int) -> int:
    """Word `index` of the stream, in plain integers; the definition that `lanes` is tested against."""
    z = (key + (index + 1) * GAMMA) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def lanes(key: int, start: int, count: int) -> NDArray[np.uint16]:
    """Lanes `start` to `start + count` of the stream as unsigned 16-bit patterns; `start` is a multiple of four."""
    if start % LANES_PER_WORD:
        raise ValueError(f"a stream is read from a multiple of {LANES_PER_WORD}, not from {start}")
    words = -(-count // LANES_PER_WORD)
    z = np.arange(1, words + 1, dtype=np.uint64)
    z *= np.uint64(GAMMA)
    z += np.uint64((key + (start // LANES_PER_WORD) * GAMMA) & _MASK)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z.astype("<u8", copy=False).view("<u2")[:count]


def signed(patterns: NDArray[np.uint16]) -> NDArray[np.int16]:
    """The lanes as signed integers, uniform in [-32768, 32767]."""
    return patterns.astype(np.uint16, copy=False).view(np.int16)


def to_bf16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """BF16 bit patterns of finite float32 numbers, rounded to nearest, ties to even, in integer arithmetic."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    bias = ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    return ((bits + bias) >> np.uint32(16)).astype(np.uint16)


def from_bf16(patterns: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The float32 numbers that BF16 bit patterns stand for (exact)."""
    return (patterns.astype(np.uint32) << np.uint32(16)).view(np.float32)


def eight_bits(value: Fraction) -> float:
    """`value` rounded to eight significant bits (ties to even): a number that BF16 holds exactly.

    A 16-bit integer times such a number has at most 24 significant bits, so float32 holds the product exactly too.
    """
    if value == 0:
        return 0.0
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    unit = Fraction(2) ** (exponent - 8)
    while magnitude / unit >= 256:
        unit *= 2
    while magnitude / unit < 128:
        unit /= 2
    rounded = round(magnitude / unit) * unit
    return float(rounded if value > 0 else -rounded)


def root(n: int) -> Fraction:
    """Square root of `n`, rounded down to a multiple of 1/1024."""
    return Fraction(isqrt(n << 20), 1 << 10)


def lane_scale(standard_deviation: Fraction) -> float:
    """Factor that gives the signed lanes (about) this standard deviation; sqrt(3) is taken as 26/15."""
    return eight_bits(standard_deviation * Fraction(26, 15) / 32768)
