"""Bytes that an instruction loads or stores, told from its text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rvvbench.kernel_model.vector_type import VectorType

_SCALAR = {"b": 1, "bu": 1, "h": 2, "hu": 2, "w": 4, "wu": 4, "d": 8}
_SCALAR_ACCESS = re.compile(r"^(?:c\.)?f?([ls])(bu|hu|wu|b|h|w|d)(?:sp)?$")
_WHOLE = re.compile(r"^v([ls])([1248])r(?:e\d+)?\.v$")
_MASK = re.compile(r"^v([ls])m\.v$")
# Unit stride and strided forms say the width of an element; indexed ones say the width of an index.
_ELEMENTS = re.compile(r"^v([ls])s?(?:seg([2-8]))?e(8|16|32|64)(?:ff)?\.v$")
_INDEXED = re.compile(r"^v([ls])[ou]x(?:seg([2-8]))?ei(?:8|16|32|64)\.v$")


@dataclass(frozen=True)
class Access:
    """Bytes loaded and stored by one execution; elements beyond vl are counted, so these are upper bounds."""

    loaded_bytes: int
    stored_bytes: int


NONE = Access(0, 0)


def access(text: str, kind: VectorType | None, vlen_bits: int) -> Access:
    """What `text` moves under vector type `kind`. A vector access moves VLMAX elements, or as many as vsetivli says."""
    mnemonic = text.split(" ", 1)[0]
    if found := _SCALAR_ACCESS.match(mnemonic):
        return _access(found[1], _SCALAR[found[2]])
    if found := _WHOLE.match(mnemonic):
        return _access(found[1], int(found[2]) * vlen_bits // 8)
    if kind is None:
        return NONE
    elements = kind.elements(vlen_bits)
    if found := _MASK.match(mnemonic):
        return _access(found[1], -(-elements // 8))
    if found := _ELEMENTS.match(mnemonic):
        return _access(found[1], elements * int(found[3]) // 8 * int(found[2] or 1))
    if found := _INDEXED.match(mnemonic):
        return _access(found[1], elements * kind.sew_bits // 8 * int(found[2] or 1))
    return NONE


def _access(direction: str, count_bytes: int) -> Access:
    return Access(count_bytes, 0) if direction == "l" else Access(0, count_bytes)
