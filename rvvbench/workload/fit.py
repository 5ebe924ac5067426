"""Can the model fit into memory at all? Asked before anything runs, because the kernel's answer is a kill."""

from __future__ import annotations

from dataclasses import dataclass

from rvvbench.errors import EnvironmentLacks
from rvvbench.manifest.models import Variant
from rvvbench.manifest.packing import packing
from rvvbench.manifest.resolve import Resolved
from rvvbench.workload.provision import Provision

WEIGHTS = (".safetensors", ".bin", ".pt")


@dataclass(frozen=True)
class Need:
    """Bytes that a process must have resident for its weights: the checkpoint's, and packed copies beside them."""

    checkpoint_bytes: int
    packed_bytes: int

    @property
    def bytes(self) -> int:
        return self.checkpoint_bytes + self.packed_bytes


def need(resolved: Resolved, variant: Variant, checkpoint_bytes: int) -> Need:
    """A lower bound: activations, pools and Python come on top. `checkpoint_bytes`: of the one that `variant` loads."""
    return Need(checkpoint_bytes, packing(resolved.model.config, variant).packed_bytes)


def check_memory(resolved: Resolved, provision: Provision, available_bytes: int | None) -> None:
    """Raise EnvironmentLacks where a variant's weights alone exceed the board's memory limit or the available memory
    (None, not known: not checked).
    """
    limits = [
        (resolved.board.memory_limit_bytes, f"the memory limit of board {resolved.board.name}"),
        (available_bytes, "the available memory of this machine"),
    ]
    for variant in resolved.variants:
        files = provision.checkpoint_of(variant).files
        wanted = need(resolved, variant, sum(size for name, (_, size) in files.items() if name.endswith(WEIGHTS)))
        for limit, name in limits:
            if limit is not None and wanted.bytes > limit:
                raise EnvironmentLacks(
                    f"{variant.name} needs at least {_mib(wanted.bytes)} for weights "
                    f"({_mib(wanted.checkpoint_bytes)} checkpoint, {_mib(wanted.packed_bytes)} packed), "
                    f"{name} is {_mib(limit)}",
                    where=resolved.experiment_document.where(("model",)),
                    mend="a smaller model, a variant with a budget of packed weights, or more memory",
                )


def _mib(count: int) -> str:
    return f"{count / 1024**2:,.0f} MiB"
