"""What is modelled: one operator at one shape of one model."""

from __future__ import annotations

from dataclasses import dataclass

from rvvbench.kernel_model.roofline import MACS_PER_CYCLE

MODELS = ("llama-3.2-1b", "qwen3-0.6b", "qwen2.5-1.5b-instruct")

ELEMENT_BYTES = 2
CODE_BYTES = 1
SCALE_BYTES = 4
"""Bytes of a BF16 or FP16 element, of an INT8 code, of an FP32 scale."""

Sizes = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Case:
    """One operator at one shape of one model.

    The work comes in `units` equal parts. `fixed` are the sizes that all parts share and `per_unit` those that grow
    with their number, as the traced program takes them; `form` is which of an operation's operators it is, where there
    are several.

    `macs` are multiply-adds, of which a core does `peak_macs_per_cycle` at best; `elements` are those written, where
    multiply-adds do not describe the work (else 0). `moved_bytes` is what passes between memory and core if every
    operand is moved once.
    """

    operation: str
    type: str
    model: str
    layer: str
    units: int
    per_unit: Sizes
    fixed: Sizes
    moved_bytes: int
    macs: int = 0
    elements: int = 0
    form: str = ""
    peak_macs_per_cycle: int = MACS_PER_CYCLE

    def text(self, units: int) -> str:
        """The case for the traced program, with `units` in place of all units."""
        sizes = (*self.fixed, *((name, units * size) for name, size in self.per_unit))
        form = f"form={self.form}," if self.form else ""
        return f"{self.operation}:type={self.type},{form}" + ",".join(f"{name}={size}" for name, size in sizes)

    @property
    def whole(self) -> str:
        """The case with all its units."""
        return self.text(self.units)
