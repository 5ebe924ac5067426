"""Modules that are present in name only: enough for SGLang to be imported, and loud where anybody would run them.

A stand-in answers any attribute: a name in CamelCase, and the few lower-case names of Triton that are types, become
empty classes (SGLang subclasses them and asks isinstance); anything else becomes an `Absent`, which serves as a
decorator at import time and raises when it is launched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

NOT_THERE = frozenset({"triton.runtime.driver.active"})
"""Attributes that are denied: SGLang asks Triton for its active driver, and takes a failure for "this is a CPU"."""

TRITON_TYPES = frozenset({"constexpr", "dtype", "tensor", "pointer_type", "block_type", "tensor_descriptor"})


def build(name: str) -> ModuleType:
    """The stand-in module of this full name, not yet in `sys.modules`."""
    module = StandIn(name)
    if name == "triton":
        vars(module).update(__version__="0.0.0", cdiv=cdiv, next_power_of_2=next_power_of_2)
    return module


class StandIn(ModuleType):
    """A module (and package) whose attributes are made when they are asked for."""

    __sglang_rvv_stand_in__ = True

    def __init__(self, name: str) -> None:
        super().__init__(name, "A stand-in of sglang_rvv; the real module is not installed.")
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        full = f"{self.__name__}.{name}"
        value = sys.modules[full] if full in sys.modules else attribute(full)
        setattr(self, name, value)
        return value


def attribute(full: str) -> Any:
    """What stands in for the attribute of this full name. Raises AttributeError for what must not be there."""
    owner, _, name = full.rpartition(".")
    if name.startswith("__") or full in NOT_THERE:
        raise AttributeError(full)
    if name[:1].isupper() or name in TRITON_TYPES:
        return StandInType(name, (), {"__module__": owner, "__init__": _accept_anything})
    return Absent(full)


class StandInType(type):
    """The type of stand-in classes: an attribute nobody defined is its own name, as a member of an enumeration is."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


def _accept_anything(self: object, *args: object, **kwargs: object) -> None:
    self.__dict__.update(kwargs)


class Absent:
    """A function that does not exist here. As a decorator it returns what cannot be launched; launching it raises."""

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self.__qualname__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and callable(args[0]):
            function: Callable[..., Any] = args[0]
            return function if isinstance(function, Absent | type) else Absent(_name_of(function))
        return self  # `@autotune(configs=...)`: the call makes the decorator

    def __getitem__(self, grid: object) -> NoReturn:
        raise RuntimeError(
            f"SGLang tried to launch the Triton kernel {self.__name__!r}; there is no Triton on this "
            "platform, and sglang_rvv only stands in for its name. What led here needs a hook for the CPU."
        )

    def __getattr__(self, name: str) -> Any:
        value = attribute(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value

    def __or__(self, other: object) -> Absent:
        return self

    __ror__ = __or__

    def __repr__(self) -> str:
        return f"<absent {self.__name__}>"


def _name_of(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', '?')}"


def cdiv(x: int, y: int) -> int:
    """Division rounded up; plain arithmetic that SGLang also uses outside kernels."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below `n` (0 for n < 1, as Triton's own arithmetic gives)."""
    return 1 << (n - 1).bit_length() if n > 0 else 0
