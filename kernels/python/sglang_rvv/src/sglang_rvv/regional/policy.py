"""The arguments of regional compilation, resolved and held against each other. Pure.

`--enable-cpu-rvv-inductor` is short for regional compilation, packed weights and small batches; each of the other three
says more exactly what it says by itself. What contradicts is refused, not guessed at.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sglang_rvv.regional.gate import EXPLICIT_PACKED, ROW_MAJOR, buckets
from sglang_rvv.settings import AUTO, Settings
from sglang_rvv.upstream import IntegrationError

REGIONAL = "regional"
EXPLICIT = "explicit"
OFF = "off"

ENABLE = "--enable-cpu-rvv-inductor"
COMPILE_MODE = "--cpu-compile-mode"
PACKED_WEIGHT_MODE = "--cpu-rvv-packed-weight-mode"
SMALL_BATCH = "--cpu-rvv-small-batch"


@dataclass(frozen=True)
class RegionalPolicy:
    """`compile_mode`: regional or off. `packed_weight_mode`: explicit (regions read packed weights where they fit into
    memory) or off (row-major ones). `small_batch`: 2 to 15 rows are compiled too.
    """

    compile_mode: str = OFF
    packed_weight_mode: str = OFF
    small_batch: bool = False

    @property
    def active(self) -> bool:
        return self.compile_mode == REGIONAL

    @property
    def packs(self) -> bool:
        return self.packed_weight_mode == EXPLICIT

    def report(self) -> dict[str, Any]:
        """As `/server_info` shows it: the three, and what follows from them."""
        if not self.active:
            return asdict(self)
        return asdict(self) | {
            "mode": EXPLICIT_PACKED if self.packs else ROW_MAJOR,
            "buckets": list(buckets(small_batch=self.small_batch)),
            "full_graph": False,
        }


def resolve(server_args: Any) -> RegionalPolicy:
    """What the arguments ask for: of None (nobody chose) what `--enable-cpu-rvv-inductor` makes of it.

    Raises IntegrationError for arguments that contradict each other.
    """
    enabled = bool(getattr(server_args, "enable_cpu_rvv_inductor", False))
    mode = getattr(server_args, "cpu_compile_mode", None)
    packed = getattr(server_args, "cpu_rvv_packed_weight_mode", None)
    small = bool(getattr(server_args, "cpu_rvv_small_batch", False))
    known(COMPILE_MODE, mode, (REGIONAL, OFF))
    known(PACKED_WEIGHT_MODE, packed, (EXPLICIT, OFF))
    if enabled and mode == OFF:
        raise contradiction(f"{ENABLE} asks for compiled regions, {COMPILE_MODE} {OFF} for none", ENABLE, COMPILE_MODE)
    if mode is None:
        mode = REGIONAL if enabled else OFF
    if packed is None:
        packed = EXPLICIT if enabled else OFF
    small = small or enabled
    if mode == OFF and packed == EXPLICIT:
        raise contradiction(f"{PACKED_WEIGHT_MODE} {EXPLICIT} is for compiled regions, of which there are none")
    if mode == OFF and small:
        raise contradiction(f"{SMALL_BATCH} is for compiled regions, of which there are none")
    return RegionalPolicy(mode, packed, small)


def check(policy: RegionalPolicy, server_args: Any, settings: Settings) -> None:
    """Raise IntegrationError for what regional compilation cannot be combined with."""
    if not policy.active:
        return
    for wrong, why in {
        server_args.quantization is not None: f"--quantization {server_args.quantization}: regions are of BF16 linears",
        bool(getattr(server_args, "enable_lora", None) or getattr(server_args, "lora_paths", None)): "adapters (LoRA)",
        settings.linear not in (AUTO, "torch"): f"SGLANG_RVV_LINEAR={settings.linear}: the linears can go one way only",
        server_args.dtype not in (AUTO, "bfloat16"): f"--dtype {server_args.dtype}: regions are of BF16 linears",
    }.items():
        if wrong:
            raise IntegrationError(
                f"regional compilation does not go with {why}", mend=f"drop that, or {ENABLE} and {COMPILE_MODE}"
            )


def known(name: str, value: str | None, choices: tuple[str, ...]) -> None:
    """Raise IntegrationError for a value that is none of `choices` (Python callers are not checked by argparse)."""
    if value is not None and value not in choices:
        raise IntegrationError(f"{name} {value} is not one of {', '.join(choices)}")


def contradiction(cause: str, *flags: str) -> IntegrationError:
    """The error for arguments that cannot both be meant."""
    mend = f"drop {' or '.join(flags)}" if flags else f"{ENABLE}, or {COMPILE_MODE} {REGIONAL}"
    return IntegrationError(cause, mend=mend)
