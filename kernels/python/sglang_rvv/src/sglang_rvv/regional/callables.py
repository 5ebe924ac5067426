"""The compiled regions: one callable for each key, compiled by TorchInductor when it is first called."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

import torch
from torch._dynamo.utils import counters

from sglang_rvv.regional.gate import EXPLICIT_PACKED, ROW_MAJOR
from sglang_rvv.regional.loaded import shared_objects
from sglang_rvv.upstream import IntegrationError

Compiled = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

CACHES = {
    "fxgraph_hits": ("inductor", "fxgraph_cache_hit"),
    "fxgraph_misses": ("inductor", "fxgraph_cache_miss"),
    "autograd_hits": ("aot_autograd", "autograd_cache_hit"),
    "autograd_misses": ("aot_autograd", "autograd_cache_miss"),
}
"""What is kept of torch's counters, by the first call of each region."""


@dataclass(frozen=True)
class Key:
    """What makes one region another's: `rows` are those of its bucket. Types without `torch.`."""

    dtype: str
    device: str
    projection: str
    rows: int
    out_features: int
    in_features: int
    mode: str

    @property
    def name(self) -> str:
        """The region's name, also that of its Python function: in torch's logs and profiles."""
        return f"rvv_{self.projection}_{self.mode}_{self.rows}x{self.out_features}x{self.in_features}"


class Callables:
    """The regions of a process, made as they are needed."""

    def __init__(
        self, compile_function: Callable[[Any], Any] | None = None, cache_dir: Callable[[], str] | None = None
    ) -> None:
        self._compile = compile_function or compile_whole
        self._cache_dir = cache_dir or inductor_cache_dir
        self._made: dict[Key, Compiled] = {}
        self._first_calls: dict[Key, dict[str, Any]] = {}

    def __len__(self) -> int:
        return len(self._made)

    def run(self, key: Key, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """`x` [m, K], m at most the region's rows, times `weight` [N, K], or packed, as `key` says -> [m, N]."""
        rows = x.shape[0]
        x = padded(x, key.rows)
        made = self._made.get(key)
        out = made(x, weight) if made is not None else self._first(key, x, weight)
        return out if rows == key.rows else out[:rows]

    def _first(self, key: Key, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Compile, or take from the cache; and keep what that took."""
        made = self._compile(function_of(key))
        folder = self._cache_dir()
        loaded = shared_objects(folder)
        before, start = cache_counts(), perf_counter()
        out: torch.Tensor = made(x, weight)
        seconds, after = perf_counter() - start, cache_counts()
        self._first_calls[key] = {
            "seconds": seconds,
            "so": self._so_of(key, shared_objects(folder) - loaded),
            **{what: after[what] - count for what, count in before.items()},
        }
        self._made[key] = made
        return out

    def _so_of(self, key: Key, loaded: frozenset[str]) -> str | None:
        """The shared object that a first call loaded. Regions that differ in their projection only share one."""
        if loaded:
            return next(iter(loaded)) if len(loaded) == 1 else None
        alike = (
            first["so"]
            for other, first in self._first_calls.items()
            if replace(other, projection="") == replace(key, projection="")
        )
        return next(alike, None)

    def report(self) -> list[dict[str, Any]]:
        """For each region its key, its name, the seconds of its first call, the caches' hits and misses then, and its
        shared object.
        """
        return [
            asdict(key) | {"name": key.name} | first
            for key, first in sorted(self._first_calls.items(), key=lambda item: item[0].name)
        ]


def inductor_cache_dir() -> str:
    """Where TorchInductor keeps what it makes."""
    from torch._inductor.runtime.cache_dir_utils import cache_dir

    return str(cache_dir())


def compile_whole(function: Any) -> Any:
    """A function as one graph of the shapes that it is called with."""
    return torch.compile(function, fullgraph=True, dynamic=False)


def function_of(key: Key) -> Compiled:
    """What the region of a key computes, before it is compiled. Raises IntegrationError for an unknown mode.

    With code of its own: Dynamo keeps what it compiled by code object, and only so much of it for each.
    """
    if key.mode == ROW_MAJOR:
        function = row_major()
    elif key.mode == EXPLICIT_PACKED:
        function = explicit_packed(key.out_features)
    else:
        raise IntegrationError(f"no region has the mode {key.mode}")
    code = function.__code__.replace(co_name=key.name, co_qualname=key.name)
    return types.FunctionType(code, function.__globals__, key.name, None, function.__closure__)


def row_major() -> types.FunctionType:
    def linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, weight)

    return linear  # type: ignore[return-value]


def explicit_packed(out_features: int) -> types.FunctionType:
    def linear(x: torch.Tensor, packed: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = torch.ops.rvv_inductor.rvv_packed_bf16_linear(x, packed, out_features)
        return out

    return linear  # type: ignore[return-value]


def padded(x: torch.Tensor, rows: int) -> torch.Tensor:
    """`x` [m, K] with zero rows after it, [rows, K], its strides (K, 1): Dynamo compiles anew for other strides."""
    m, k = x.shape
    if m == rows and x.stride() == (k, 1):
        return x
    out = x.new_zeros((rows, k)) if m < rows else x.new_empty((rows, k))
    out[:m].copy_(x)
    return out


def cache_counts() -> dict[str, int]:
    """Torch's counters of its caches, as they are."""
    return {what: int(counters[group][name]) for what, (group, name) in CACHES.items()}
