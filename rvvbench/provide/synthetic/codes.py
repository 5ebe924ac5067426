"""The code of every token: its orbit and phase, and the sign vector that stands for it in the hidden dimensions."""

from __future__ import annotations

from math import gcd

import numpy as np
from numpy.typing import NDArray

from rvvbench.provide.synthetic.architecture import ORBIT, Architecture
from rvvbench.provide.synthetic.stream import lanes, stream_key, word

LANES = range(ORBIT, 2 * ORBIT)
"""Hidden dimensions that hold a constant instead of a code: not the last ones, so that those carry content."""


def is_lane(arch: Architecture) -> NDArray[np.bool_]:
    """[hidden]: which hidden dimensions are lanes."""
    dims = np.arange(arch.hidden)
    return (dims >= LANES.start) & (dims < LANES.stop)


def affine(arch: Architecture, seed: int) -> tuple[int, int]:
    """(A, B) of the bijection t -> (A t + B) mod vocabulary that scatters the orbits over the token ids."""
    key = stream_key(seed, "orbits")
    multiplier = word(key, 0) % arch.vocab_size
    while gcd(multiplier, arch.vocab_size) != 1:
        multiplier += 1
    return multiplier, word(key, 1) % arch.vocab_size


def successor(arch: Architecture, seed: int, token: int, power: int) -> int:
    """R^power of a token: the token that many phases later in its orbit."""
    multiplier, offset = affine(arch, seed)
    orbit, phase = divmod((multiplier * token + offset) % arch.vocab_size, ORBIT)
    place = orbit * ORBIT + (phase + power) % ORBIT
    return (place - offset) * pow(multiplier, -1, arch.vocab_size) % arch.vocab_size


def orbit_bits(arch: Architecture, seed: int) -> NDArray[np.int8]:
    """[vocabulary / 64, kv_width]: the random signs (+1, -1) of every orbit."""
    shape = (arch.vocab_size // ORBIT, arch.kv_width)
    patterns = lanes(stream_key(seed, "codes"), 0, shape[0] * shape[1])
    return (1 - 2 * (patterns & np.uint16(1)).astype(np.int8)).reshape(shape)


def tile_signs(arch: Architecture, seed: int) -> NDArray[np.int8]:
    """[hidden]: the fixed sign of every hidden dimension; +1 on the lanes."""
    patterns = lanes(stream_key(seed, "tile-signs"), 0, arch.hidden)
    signs = 1 - 2 * (patterns & np.uint16(1)).astype(np.int8)
    signs[is_lane(arch)] = 1
    return signs


def rotated_source(dims: NDArray[np.int64], power: int) -> NDArray[np.int64]:
    """The dimension that R^power moves to each of `dims`: every block of 64 dimensions rotates within itself."""
    return np.asarray(dims // ORBIT * ORBIT + (dims - power) % ORBIT, np.int64)


def codes(arch: Architecture, seed: int, bits: NDArray[np.int8], tokens: NDArray[np.int64]) -> NDArray[np.int8]:
    """[tokens, kv_width]: the code of each token, from the `orbit_bits`."""
    multiplier, offset = affine(arch, seed)
    orbit, phase = np.divmod((multiplier * tokens + offset) % arch.vocab_size, ORBIT)
    dims = np.arange(arch.kv_width)
    by_phase = np.stack([rotated_source(dims, power) for power in range(ORBIT)])
    return np.asarray(bits[orbit[:, None], by_phase[phase]])
