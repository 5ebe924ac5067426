"""The planted successor model: which numbers a synthetic checkpoint holds, and why its greedy choice is robust.

Plain random weights give logits whose largest two lie closer together than two correct BF16 implementations do. These
weights are mostly noise too, but carry a computation that every projection takes part in and whose answer stands far
above the rest:

*Codes.* Token t has an orbit and a phase, (q, p) = divmod((A t + B) mod vocabulary, 64), with A, B from `codes.affine`.
Its code is a sign vector: content dimension 64 b + i carries bit 64 b + (i - p) mod 64 of the orbit's random bits, so
that the permutation R (a rotation of every block of 64 dimensions) leads from a token to the next of its orbit. The
embedding tiles the code over the hidden dimensions, with a fixed random sign for each, plus noise; hidden dimensions
64..127 (the lanes) hold a constant instead, which the layers use as a bias.

*Layers.* The first and the last layer are planted. Attention there moves the code of the token `OFFSETS` positions back
(1, then 2) by R^1 (R^4): half of the query heads of a group score the relative position only (a sum of high rotary
frequencies, sharp enough that the softmax is saturated); the other half score noise, and so mix in codes from the whole
context. The MLP moves the code by R^2 (R^8): the gate is near a constant taken from the lanes, `up` reads a dimension,
`down` writes it where R moves it. Each block adds four times what the residual stream holds. So the greedy token after
position n is R^15 of the token at position n - 3, its logit is about four times the next planted one (a token that one
block fewer would give), and a block that fails leads to another token of the orbit. The layers between the two only add
noise.

*Noise.* Every row of every projection holds dense noise a quarter as strong as what is planted, so that every weight
moves the logits.

Sizes are exact ratios rounded to eight bits (`stream.eight_bits`); the only transcendental constants, the sines and
cosines of the two offsets, come from `decimal` with 40 digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from rvvbench.provide.synthetic import codes
from rvvbench.provide.synthetic.architecture import ORBIT, Architecture
from rvvbench.provide.synthetic.dense import CHUNK_ELEMENTS, DenseTensor, Planted, TensorRecipe
from rvvbench.provide.synthetic.stream import eight_bits, lane_scale, lanes, root, signed, stream_key, to_bf16

LANES = codes.LANES
GAIN = 4
"""What a planted block writes, relative to the residual stream it reads."""
GROWTH = Fraction(33, 8)
"""sqrt(1 + GAIN^2), by which a planted block raises the residual stream."""
EMBEDDING = Fraction(1, 16)
"""Magnitude of an embedding element, and so the level of the residual stream at the start."""
NOISE = Fraction(1, 4)
"""Standard deviation of the dense noise of a block's output relative to what is planted."""
GATE = 4
"""Constant part of a planted gate; silu(4) = 3.93."""
SHIFTS = ((1, 2), (4, 8))
"""Powers of R of (attention, MLP) in the first and the last layer: sums of subsets differ, the whole sum is odd."""
OFFSETS = (1, 2)
"""How many positions back the sharp heads of the first and the last layer look."""
KEY_LEVEL, QUERY_LEVEL = 4, 64
"""Amplitude of the position part of keys and of sharp queries, for each fast rotary pair."""
KEY_DIRECTION = (Fraction(4, 5), Fraction(3, 5))
"""Unit vector of the keys' constant in a fast rotary pair."""
FAST_PAIRS, STILL_PAIRS = 8, 4
"""Rotary pairs of a head that score the position: the fastest ones, and the slowest, which hardly turn."""


@dataclass(frozen=True)
class Plant:
    """The planted computation of a layer; `level` is the residual stream's root mean square where it begins."""

    offset: int
    attention_shift: int
    mlp_shift: int
    level: Fraction


def plant_of(arch: Architecture, layer: int) -> Plant | None:
    """The plant of a layer: the first and the last have one."""
    last = arch.layers - 1
    if layer not in (0, last):
        return None
    which = 0 if layer == 0 else 1
    return Plant(OFFSETS[which], *SHIFTS[which], EMBEDDING if which == 0 else EMBEDDING * GROWTH**2)


def successor_shift(arch: Architecture) -> tuple[int, int]:
    """(power, positions back) of the greedy token: it is R^power of the token that far before the last."""
    planted = range(min(arch.layers, 2))
    return sum(sum(SHIFTS[i]) for i in planted), sum(OFFSETS[i] for i in planted)


def recipe(arch: Architecture, seed: int, name: str) -> TensorRecipe:
    """The recipe of a tensor of `arch.tensors()`."""
    if name in ("model.embed_tokens.weight", "lm_head.weight"):
        return CodeTensor(arch, seed, name)
    if name == "model.norm.weight":
        # A logit of 3/4 bit for each bit of the vocabulary keeps the probability of the greedy token away from 0 and 1.
        target = Fraction(3 * arch.vocab_size.bit_length(), 4)
        return _norm(arch, seed, name, target / (arch.hidden * EMBEDDING * Fraction(2, 3)), Fraction(1, 4))
    layer, part = name.removeprefix("model.layers.").split(".", 1)
    plant = plant_of(arch, int(layer))
    part, leaf = part.rsplit(".", 1)
    if part in ("input_layernorm", "post_attention_layernorm"):
        # Attention does not carry the lanes, so they lag behind by one block's growth when the MLP reads them.
        lag = part == "post_attention_layernorm" and plant is not None
        return _norm(arch, seed, name, Fraction(1), Fraction(GAIN if lag else 1))
    module = part.split(".")[1]
    if module in ("q_norm", "k_norm"):
        base = np.where(_position_dims(arch), 5.0, 1.0).astype(np.float32)
        return DenseTensor(name, seed, 1, np.full(arch.head_dim, 2.0**-18, np.float32), base)
    if leaf == "bias":
        return _bias(arch, seed, name, module, plant)
    if plant is None:
        return _unplanted(arch, seed, name, module)
    builders = {
        "q_proj": _query,
        "k_proj": _key,
        "v_proj": _value,
        "o_proj": _output,
        "gate_proj": _gate,
        "up_proj": _up,
        "down_proj": _down,
    }
    return builders[module](arch, seed, name, plant)


@dataclass(frozen=True)
class CodeTensor:
    """Embedding or untied head: the codes of all tokens, tiled and signed, plus noise; [vocabulary, hidden]."""

    arch: Architecture
    seed: int
    name: str

    def chunks(self) -> Iterator[NDArray[np.uint16]]:
        arch = self.arch
        key = stream_key(self.seed, self.name)
        bits = codes.orbit_bits(arch, self.seed)
        signs = codes.tile_signs(arch, self.seed)
        lane = codes.is_lane(arch)
        amplitude = np.float32(EMBEDDING)
        scale = np.where(lane, amplitude * 2.0**-18, amplitude * 2.0**-16).astype(np.float32)
        step = max(1, CHUNK_ELEMENTS // arch.hidden)
        for first in range(0, arch.vocab_size, step):
            count = min(step, arch.vocab_size - first)
            content = codes.codes(arch, self.seed, bits, np.arange(first, first + count))
            tiled = np.tile(content, (1, arch.hidden // arch.kv_width)) * signs
            tiled[:, lane] = 1
            noise = signed(lanes(key, first * arch.hidden, count * arch.hidden)).reshape(count, arch.hidden)
            yield to_bf16(tiled * amplitude + noise * scale).reshape(-1)


def _norm(arch: Architecture, seed: int, name: str, level: Fraction, lane_factor: Fraction) -> DenseTensor:
    """Norm weights around `level` (by an eighth), and `lane_factor` times it on the lanes."""
    lane = codes.is_lane(arch)
    base = np.where(lane, eight_bits(level * lane_factor), eight_bits(level)).astype(np.float32)
    scale = np.where(lane, 0.0, eight_bits(level / 8 / 32768)).astype(np.float32)
    return DenseTensor(name, seed, 1, scale, base)


def _position_dims(arch: Architecture) -> NDArray[np.bool_]:
    """Which dimensions of a head score the position; rotary pair i is (i, i + head_dim / 2)."""
    half = arch.head_dim // 2
    pair = np.arange(arch.head_dim) % half
    return (pair < FAST_PAIRS) | (pair >= half - STILL_PAIRS)


def _sharp_heads(arch: Architecture) -> int:
    """Sharp heads of a group: they come first in it."""
    return max(1, arch.heads // arch.kv_heads // 2)


def _rotation(arch: Architecture, offset: int) -> list[tuple[Fraction, Fraction]]:
    """(cos, sin) of `offset` rotary steps for each fast pair. The `llama3` scaling leaves these pairs as they are."""
    result = []
    with localcontext() as context:
        context.prec = 40
        for pair in range(FAST_PAIRS):
            frequency = (Decimal(arch.rope.theta).ln() * Decimal(-2 * pair) / Decimal(arch.head_dim)).exp()
            angle = frequency * offset
            cosine = sine = Decimal(0)
            term = Decimal(1)
            for n in range(60):
                sign = -1 if n % 4 in (2, 3) else 1
                if n % 2:
                    sine += sign * term
                else:
                    cosine += sign * term
                term = term * angle / (n + 1)
            result.append((Fraction(cosine), Fraction(sine)))
    return result


def _query_constants(arch: Architecture, plant: Plant) -> NDArray[np.float64]:
    """Position part of the queries, [q_width]; zero for heads that are not sharp.

    The fast pairs hold the keys' constant turned back by the offset. The still pairs subtract what the fast pairs score
    one position beside the match, so that the score is positive at the match only, and a key that is a little too large
    wins nothing.
    """
    half = arch.head_dim // 2
    head = np.zeros(arch.head_dim)
    (cosine, sine), level = KEY_DIRECTION, QUERY_LEVEL
    for pair, (c, s) in enumerate(_rotation(arch, plant.offset)):
        head[pair] = eight_bits(level * (cosine * c + sine * s))
        head[pair + half] = eight_bits(level * (sine * c - cosine * s))
    beside = sum((cosine for cosine, _ in _rotation(arch, 1)), Fraction(0))
    head[half - STILL_PAIRS : half] = eight_bits(-QUERY_LEVEL * beside / STILL_PAIRS)
    group = arch.heads // arch.kv_heads
    sharp = np.arange(arch.heads) % group < _sharp_heads(arch)
    return (sharp[:, None] * head).reshape(-1)


def _key_constants(arch: Architecture) -> NDArray[np.float64]:
    """Position part of the keys, [kv_width]: `KEY_DIRECTION` in the fast pairs, the first axis in the still ones."""
    half = arch.head_dim // 2
    head = np.zeros(arch.head_dim)
    head[:FAST_PAIRS], head[half : half + FAST_PAIRS] = (eight_bits(KEY_LEVEL * part) for part in KEY_DIRECTION)
    head[half - STILL_PAIRS : half] = KEY_LEVEL
    return np.tile(head, arch.kv_heads)


def _from_lanes(arch: Architecture, constants: NDArray[np.float64]) -> NDArray[np.float64]:
    """The part of the constants that the weights make from the lanes; where there are biases, they make the rest.

    With the first axis of each pair from the weights and the second from the bias, losing either turns the pairs, and
    the head looks elsewhere.
    """
    if not arch.qkv_bias:
        return constants
    first_axis = np.arange(len(constants)) % arch.head_dim < arch.head_dim // 2
    return np.where(first_axis, constants, 0.0)


def _lane_entries(constants: NDArray[np.float64]) -> Planted:
    """Entries that turn the lanes (each about 1) into a row's constant; rows of constant zero keep their noise."""
    rows = np.flatnonzero(constants)
    values = (constants[rows] / ORBIT).astype(np.float32)
    columns = np.arange(LANES.start, LANES.stop)
    return Planted.of([(np.repeat(rows, ORBIT), np.tile(columns, len(rows)), np.repeat(values, ORBIT))])


def _scales(
    standard_deviations: Sequence[tuple[object, Fraction]], rows: int, divisor: Fraction
) -> NDArray[np.float32]:
    """Scale of each row: later (mask, standard deviation of the output) pairs override earlier ones."""
    scale = np.zeros(rows, np.float32)
    for mask, deviation in standard_deviations:
        scale[mask if isinstance(mask, np.ndarray) else slice(None)] = lane_scale(deviation / divisor)
    return scale


def _query(arch: Architecture, seed: int, name: str, plant: Plant) -> DenseTensor:
    position = np.tile(_position_dims(arch), arch.heads)
    sharp = np.repeat(np.arange(arch.heads) % (arch.heads // arch.kv_heads) < _sharp_heads(arch), arch.head_dim)
    deviations = [(True, Fraction(9, 8)), (position, Fraction(1, 32)), (sharp, Fraction(1, 4))]
    planted = _lane_entries(_from_lanes(arch, _query_constants(arch, plant)))
    return DenseTensor(name, seed, arch.hidden, _scales(deviations, arch.q_width, root(arch.hidden)), None, planted)


def _key(arch: Architecture, seed: int, name: str, plant: Plant) -> DenseTensor:
    position = np.tile(_position_dims(arch), arch.kv_heads)
    deviations = [(True, Fraction(9, 8)), (position, Fraction(1, 32))]
    planted = _lane_entries(_from_lanes(arch, _key_constants(arch)))
    return DenseTensor(name, seed, arch.hidden, _scales(deviations, arch.kv_width, root(arch.hidden)), None, planted)


def _bias(arch: Architecture, seed: int, name: str, module: str, plant: Plant | None) -> DenseTensor:
    """Biases: noise, and the position part where there is a plant."""
    width = arch.q_width if module == "q_proj" else arch.kv_width
    scale = np.full(width, lane_scale(Fraction(1, 4)), np.float32)
    if plant is None or module == "v_proj":
        return DenseTensor(name, seed, 1, scale)
    constants = _query_constants(arch, plant) if module == "q_proj" else _key_constants(arch)
    scale[np.tile(_position_dims(arch), width // arch.head_dim)] = lane_scale(Fraction(1, 16))
    return DenseTensor(name, seed, 1, scale, (constants - _from_lanes(arch, constants)).astype(np.float32))


def _value(arch: Architecture, seed: int, name: str, plant: Plant) -> DenseTensor:
    """Value row d: the mean of the copies of content dimension d."""
    content = np.flatnonzero(~codes.is_lane(arch))
    rows = content % arch.kv_width
    copies = np.bincount(rows, minlength=arch.kv_width)
    share = np.array([eight_bits(Fraction(1, int(n))) if n else 0.0 for n in copies])
    values = (codes.tile_signs(arch, seed)[content] * share[rows]).astype(np.float32)
    scale = _scales([(True, NOISE)], arch.kv_width, root(arch.hidden))
    return DenseTensor(name, seed, arch.hidden, scale, None, Planted.of([(rows, content, values)]))


def _output(arch: Architecture, seed: int, name: str, plant: Plant) -> DenseTensor:
    """Output row j: the value of the dimension that R moves to j, from a sharp head, and half of it from a soft one."""
    written = GAIN * plant.level
    lane = codes.is_lane(arch)
    rows = np.flatnonzero(~lane)
    source = codes.rotated_source(rows % arch.kv_width, plant.attention_shift)
    copy, group, sharp = rows // arch.kv_width, arch.heads // arch.kv_heads, _sharp_heads(arch)
    signs = codes.tile_signs(arch, seed)[rows]

    def column(head_in_group: NDArray[np.int64]) -> NDArray[np.int64]:
        head = source // arch.head_dim * group + head_in_group
        return np.asarray(head * arch.head_dim + source % arch.head_dim, np.int64)

    entries = [(rows, column(copy % sharp), (signs * eight_bits(written)).astype(np.float32))]
    if group > sharp:
        soft = sharp + copy % (group - sharp)
        entries.append((rows, column(soft), (signs * eight_bits(written / 2)).astype(np.float32)))
    # The lanes get little noise: nothing renews them before the MLP reads them.
    scale = _scales([(True, NOISE * written), (lane, NOISE * written / 16)], arch.hidden, root(arch.q_width))
    return DenseTensor(name, seed, arch.q_width, scale, None, Planted.of(entries))


def _gate(arch: Architecture, seed: int, name: str, plant: Plant) -> DenseTensor:
    scale = _scales([(True, Fraction(1, 2))], arch.intermediate, root(arch.hidden))
    return DenseTensor(name, seed, arch.hidden, scale, None, _lane_entries(np.full(arch.intermediate, float(GATE))))


def _up(arch: Architecture, seed: int, name: str, plant: Plant) -> DenseTensor:
    """Unit u reads hidden dimension u mod hidden."""
    units = np.arange(arch.intermediate)
    scale = _scales([(True, NOISE)], arch.intermediate, root(arch.hidden))
    planted = Planted.of([(units, units % arch.hidden, np.ones(arch.intermediate, np.float32))])
    return DenseTensor(name, seed, arch.hidden, scale, None, planted)


def _down(arch: Architecture, seed: int, name: str, plant: Plant) -> DenseTensor:
    """Row j reads the units of the dimension that R moves to j; the lanes stay where they are."""
    written = GAIN * plant.level * GROWTH
    lane = codes.is_lane(arch)
    dims = np.arange(arch.hidden)
    source = np.where(lane, dims, codes.rotated_source(dims, plant.mlp_shift))
    target = np.empty(arch.hidden, np.int64)
    target[source] = dims
    units = np.arange(arch.intermediate)
    rows = target[units % arch.hidden]
    sharing = np.bincount(units % arch.hidden, minlength=arch.hidden)
    share = np.array([eight_bits(written / (GATE * int(n))) for n in sharing])
    signs = codes.tile_signs(arch, seed)
    values = (signs[rows] * signs[units % arch.hidden] * share[units % arch.hidden]).astype(np.float32)
    scale = _scales(
        [(True, NOISE * written / GATE), (lane, NOISE * written / GATE / 4)], arch.hidden, root(arch.intermediate)
    )
    return DenseTensor(name, seed, arch.intermediate, scale, None, Planted.of([(rows, units, values)]))


def _unplanted(arch: Architecture, seed: int, name: str, module: str) -> DenseTensor:
    """Noise; all these layers together add a quarter of what the residual stream holds."""
    blocks = 2 * (arch.layers - 2)
    written = EMBEDDING * GROWTH**2 / (4 * root(blocks))
    outputs = {
        "q_proj": arch.q_width,
        "k_proj": arch.kv_width,
        "v_proj": arch.kv_width,
        "gate_proj": arch.intermediate,
        "up_proj": arch.intermediate,
    }
    if module in outputs:
        return DenseTensor(name, seed, arch.hidden, _scales([(True, Fraction(1))], outputs[module], root(arch.hidden)))
    if module == "o_proj":
        return DenseTensor(name, seed, arch.q_width, _scales([(True, written)], arch.hidden, root(arch.q_width)))
    # The root mean square of silu(g) u for standard normal g and u is 0.6.
    return DenseTensor(
        name, seed, arch.intermediate, _scales([(True, written * Fraction(5, 3))], arch.hidden, root(arch.intermediate))
    )
