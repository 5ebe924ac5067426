"""Can the model fit into memory at all? Asked before anything runs, because the kernel's answer is a kill."""

from __future__ import annotations

from dataclasses import dataclass

from rvvbench.errors import EnvironmentLacks
from rvvbench.manifest.models import Variant
from rvvbench.manifest.resolve import Resolved
from rvvbench.manifest.shapes import projection_shapes
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
    """A lower bound: activations, pools and Python come on top. `checkpoint_bytes`: of the one that `variant` loads.

    The row-major weight stays beside its packed copy. Of a W8A8 checkpoint only `lm_head` is not INT8.
    """
    packed = 0
    for shape in projection_shapes(resolved.model.config):
        if variant.linear != "torch" and shape.projection in variant.projections:
            int8 = variant.linear == "w8a8" and shape.projection != "lm_head"
            packed += shape.packed_int8_bytes if int8 else shape.packed_bytes
    return Need(checkpoint_bytes, packed)


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
                    mend="a smaller model, fewer packed projections, or more memory",
                )


def _mib(count: int) -> str:
    return f"{count / 1024**2:,.0f} MiB"
