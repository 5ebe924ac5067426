"""Putting this package in place: the vector ISA, the lowerings, and the cache key."""

from __future__ import annotations

import importlib
import threading
from dataclasses import dataclass

from rvv_inductor import cache_key

_lock = threading.Lock()
_installed: Installed | None = None


@dataclass(frozen=True)
class Installed:
    """What is in place. `isa`: what code is generated for, `none` where the machine has no V; `cache_key_tag`: torch's,
    with ours in it.
    """

    isa: str
    cache_key_tag: str


def install() -> Installed:
    """Put it in place; a second call changes nothing and gives the same. Raises InductorError where torch does not fit.

    Takes seconds: it imports TorchInductor.
    """
    global _installed
    with _lock:
        if _installed is None:
            # Torch's lowerings first: its templates cannot be imported before them.
            importlib.import_module("torch._inductor.lowering")
            for part in ("vec_isa", "lowering"):
                importlib.import_module(f"rvv_inductor.{part}").register()
            isa = cache_key.isa_here()
            _installed = Installed(isa, cache_key.apply(cache_key.tag(isa)))
        return _installed
