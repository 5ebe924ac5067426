"""`PackedWeight`: the one owner of the packed copy of a module's weight.

The copy is a non-persistent buffer of the module itself: it is in no `state_dict`, it moves and dies with the module,
and the row-major weight stays. What it was packed from is on record and looked at before every use; where that does not
hold, the copy is dropped, and the module is row-major until it is packed again.

Whoever writes into a weight in place must call `invalidate(module)` (or `sglang_rvv.linear.repack(model)` for all):
pointer, shape and type are then what they were, and only the version counter would tell. With
SGLANG_RVV_DEBUG_WEIGHTS=1 that counter is looked at too; it does not count writes through `weight.data`.
`load_state_dict` and SGLang's `update_weights_*` are covered.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from sglang_rvv import kernels
from sglang_rvv.budget import Budget

BUFFER = "rvv_packed_weight"
"""Name of the buffer [ceil(N/32), K, 32]."""

OWNER = "rvv_packed_weight_owner"
"""Name of the module's plain attribute that holds its `PackedWeight`."""

PACKABLE = (torch.bfloat16, torch.float16, torch.int8)


@dataclass(frozen=True)
class Source:
    """The weight that a copy was packed from."""

    weight: Any  # weakref.ref of a tensor
    memory: Any  # weakref.ref of its storage: other memory can get the same address
    pointer: int
    shape: torch.Size
    stride: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    version: int | None

    @classmethod
    def of(cls, weight: torch.Tensor, *, with_version: bool) -> Source:
        return cls(
            weakref.ref(weight),
            weakref.ref(weight.untyped_storage()),
            weight.data_ptr(),
            weight.shape,
            weight.stride(),
            weight.dtype,
            weight.device,
            version_of(weight) if with_version else None,
        )

    def is_still(self, weight: torch.Tensor) -> bool:
        """Whether `weight` is the same tensor over the same memory, in the same form."""
        return bool(
            self.weight() is weight
            and self.memory() is weight.untyped_storage()
            and self.pointer == weight.data_ptr()
            and self.shape == weight.shape
            and self.stride == weight.stride()
            and self.dtype == weight.dtype
            and self.device == weight.device
            and (self.version is None or self.version == version_of(weight))
        )


def version_of(weight: torch.Tensor) -> int | None:
    """The counter of writes in place; None for a tensor of inference mode, which has none."""
    return None if weight.is_inference() else weight._version


class PackedWeight:
    """Owns `module.rvv_packed_weight`, the packed form of `module.weight` [N, K]. One for each module: `own`."""

    def __init__(self, module: torch.nn.Module, name: str, *, debug: bool = False) -> None:
        self._module = weakref.ref(module)
        self.name = name
        self.debug = debug
        self._source: Source | None = None

    @property
    def cost_bytes(self) -> int:
        """Bytes of the packed copy: padded N x K x element size."""
        weight = self._weight()
        n, k = weight.shape
        return kernels.packed_bytes(n, k, weight.element_size())

    @property
    def held_bytes(self) -> int:
        """Bytes of the copy that is there now."""
        module = self._module()
        buffer = None if module is None else module._buffers.get(BUFFER)
        return 0 if buffer is None else buffer.numel() * buffer.element_size()

    def is_packable(self) -> bool:
        """Whether the weight is a matrix of a type that the kernels pack, on the CPU."""
        weight = self._weight()
        return weight.dim() == 2 and weight.dtype in PACKABLE and weight.device.type == "cpu"

    def pack(self) -> None:
        """Make the copy from the weight as it is now."""
        weight = self._weight()
        self.invalidate()
        with torch.no_grad():
            packed = kernels.pack(weight.data)
        self._owned()._buffers[BUFFER] = packed
        self._source = Source.of(weight, with_version=self.debug)

    def invalidate(self) -> None:
        """Drop the copy: the module is row-major until it is packed again."""
        self._source = None
        module = self._module()
        if module is not None and BUFFER in module._buffers:
            module._buffers[BUFFER] = None

    def current(self) -> torch.Tensor | None:
        """The packed weight if it is that of the module's weight as it is now, else None, and the copy is dropped."""
        if self._source is None:
            return None
        module = self._owned()
        packed: torch.Tensor | None = module._buffers[BUFFER]
        weight = module._parameters.get("weight")
        if weight is None or packed is None or packed.dtype != weight.dtype or not self._source.is_still(weight):
            self.invalidate()
            return None
        return packed

    def _owned(self) -> torch.nn.Module:
        module = self._module()
        if module is None:
            raise ReferenceError(f"the module {self.name} is gone, and its packed weight with it")
        return module

    def _weight(self) -> torch.Tensor:
        weight: torch.Tensor = self._owned().weight
        return weight


def own(module: torch.nn.Module, name: str, *, debug: bool = False) -> PackedWeight:
    """The owner of the module's packed weight, made if it has none; `name` is the module's full name in the model."""
    owner = owner_of(module)
    if owner is None:
        owner = PackedWeight(module, name, debug=debug)
        module.__dict__[OWNER] = owner
        module.register_buffer(BUFFER, None, persistent=False)
        module.register_load_state_dict_post_hook(_after_load_state_dict)
    return owner


def disown(module: torch.nn.Module) -> None:
    """Drop the packed copy of a module for good."""
    owner = owner_of(module)
    if owner is not None:
        owner.invalidate()
        del module.__dict__[OWNER]


def owner_of(module: Any) -> PackedWeight | None:
    """The owner of the module's packed weight; None where there is none, or it is another module's (a copy of one)."""
    owner: PackedWeight | None = getattr(module, "__dict__", {}).get(OWNER)
    return owner if owner is not None and owner._module() is module else None


def _after_load_state_dict(module: torch.nn.Module, _: Any) -> None:
    invalidate(module)


def invalidate(module: torch.nn.Module) -> None:
    """Drop the packed copies of a module and of all below it; for whoever writes into weights in place."""
    for owner in owners(module):
        owner.invalidate()


def owners(model: torch.nn.Module) -> Iterator[PackedWeight]:
    """The owners in a model, in the order of its modules."""
    for module in model.modules():
        owner = owner_of(module)
        if owner is not None:
            yield owner


def pack_within(wanted: Iterable[PackedWeight], budget: Budget) -> None:
    """Pack those that can be and fit into the budget, in this order; the others drop what they had."""
    for owner in wanted:
        if owner.is_packable() and budget.take(owner.name, owner.cost_bytes):
            owner.pack()
        else:
            owner.invalidate()
