"""A tensor as the generator describes it: dense noise, on top of which single entries are planted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rvvbench.provide.synthetic.stream import lanes, signed, stream_key, to_bf16

CHUNK_ELEMENTS = 1 << 20
"""Elements made at a time: bounds the memory, changes no bit."""


class TensorRecipe(Protocol):
    """A tensor that can be written piece by piece."""

    def chunks(self) -> Iterator[NDArray[np.uint16]]:
        """BF16 bit patterns in row-major order, flat pieces of whole rows."""
        ...


@dataclass(frozen=True)
class Planted:
    """Entries with a value of their own: `values[i]` replaces the noise at (`rows[i]`, `columns[i]`). Rows ascend."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float32]

    @staticmethod
    def of(entries: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]) -> Planted:
        """All of the (rows, columns, values) triples, sorted by row."""
        if not entries:
            return Planted(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
        rows, columns, values = (np.concatenate(parts) for parts in zip(*entries, strict=True))
        order = np.argsort(rows, kind="stable")
        return Planted(rows[order], columns[order], values[order])


@dataclass(frozen=True)
class DenseTensor:
    """Noise of a scale per row (an exact number of eight bits), rounded to BF16, with planted entries.

    `base` is added before rounding (1 for norm weights, else 0). A vector is a tensor of one column. Element (r, c) of
    the noise is signed lane `r * columns + c` of the stream `name` times `row_scale[r]`.
    """

    name: str
    seed: int
    columns: int
    row_scale: NDArray[np.float32]
    base: NDArray[np.float32] | None = None
    planted: Planted = field(default_factory=lambda: Planted.of([]))

    def chunks(self) -> Iterator[NDArray[np.uint16]]:
        key = stream_key(self.seed, self.name)
        rows = len(self.row_scale)
        step = 4 * max(1, CHUNK_ELEMENTS // self.columns // 4)
        for first in range(0, rows, step):
            last = min(first + step, rows)
            noise = signed(lanes(key, first * self.columns, (last - first) * self.columns)).reshape(
                last - first, self.columns
            )
            values = noise * self.row_scale[first:last, None]
            if self.base is not None:
                values += self.base[first:last, None]
            begin, end = np.searchsorted(self.planted.rows, [first, last])
            where = slice(int(begin), int(end))
            values[self.planted.rows[where] - first, self.planted.columns[where]] = self.planted.values[where]
            yield to_bf16(values).reshape(-1)
