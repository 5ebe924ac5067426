"""How near to what the machine could do at best. Constants of the SpacemiT K1 (BPI-F3)."""

from __future__ import annotations

from dataclasses import dataclass

CLOCK_HZ = 1_600_000_000
CORES = 8
MACS_PER_CYCLE = 8
"""FP32 multiply-adds per cycle and core: one 256-bit vector FMA, 8 lanes."""
INT8_MACS_PER_CYCLE = 16
"""INT8 multiply-adds per cycle and core: 32 widening products take the integer unit two cycles, as llvm-mca has it."""
BANDWIDTHS_BYTES_PER_S = (5_700_000_000, 10_660_000_000)
"""Best published for LLM decoding on the board; the theoretical rate of its 32-bit LPDDR4X-2666 bus."""


@dataclass(frozen=True)
class Roof:
    """One bandwidth. `share` is the least time that arithmetic or memory takes over the modelled time, 0 to 1."""

    bandwidth_bytes_per_s: int
    modelled_s: float
    share: float
    bound: str


def roofs(macs: int, moved_bytes: int, cycles: float, macs_per_cycle: int = MACS_PER_CYCLE) -> list[Roof]:
    """The whole chip, the work spread evenly over its cores, memory and arithmetic perfectly overlapped.

    The modelled time is the longer of `cycles` (of one core doing everything) / cores / clock and bytes / bandwidth.
    `macs_per_cycle` is the peak of a core.
    """
    result = []
    for bandwidth in BANDWIDTHS_BYTES_PER_S:
        memory_s = moved_bytes / bandwidth
        compute_s = cycles / CORES / CLOCK_HZ
        least_s = max(macs / (macs_per_cycle * CORES * CLOCK_HZ), memory_s)
        modelled_s = max(compute_s, memory_s)
        bound = "memory" if memory_s >= compute_s else "cycles"
        result.append(Roof(bandwidth, modelled_s, least_s / modelled_s, bound))
    return result
