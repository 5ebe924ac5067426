"""The vector type that a `vsetvli` puts in force: element width and register grouping."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SETTING = re.compile(r"\be(8|16|32|64), (m[1248]|mf[248])\b")
_IMMEDIATE = re.compile(r"^vsetivli \w+, (0x[0-9a-f]+|\d+),")


@dataclass(frozen=True, order=True)
class VectorType:
    """`sew_bits` of an element and `lmul` as assemblers write it ("m2", "mf2").

    `avl` is the number of elements asked for where the instruction itself says it, else None.
    """

    sew_bits: int
    lmul: str
    avl: int | None = None

    def elements(self, vlen_bits: int) -> int:
        """The most elements that an instruction works on: VLMAX, or `avl` where that is known and smaller.

        VLMAX = LMUL * VLEN / SEW (RVV 1.0, section 3.4.2).
        """
        number = int(self.lmul[-1])
        group_bits = vlen_bits // number if self.lmul.startswith("mf") else vlen_bits * number
        vlmax = group_bits // self.sew_bits
        return vlmax if self.avl is None else min(self.avl, vlmax)


def sets_vector_type(text: str) -> bool:
    """Whether the instruction is vsetvli, vsetivli or vsetvl."""
    return text.startswith("vset")


def uses_vector_type(text: str) -> bool:
    """Whether the instruction is a vector instruction that works under the type in force."""
    return text.startswith("v") and not sets_vector_type(text)


def vector_type_of(text: str) -> VectorType | None:
    """What a vsetvli or vsetivli sets; None for vsetvl, whose type is in a register."""
    setting = _SETTING.search(text)
    if setting is None:
        return None
    immediate = _IMMEDIATE.match(text)
    return VectorType(int(setting[1]), setting[2], int(immediate[1], 0) if immediate else None)
