"""The kernels of `kernels/csrc/core` as text that generated code carries in itself.

One implementation for both worlds: what a lowered linear compiles are the files that the operators are built from.
They become one text without `#include "..."`: the generated source then needs no folder, and its hash, which names the
`.so`, is over every line of them.

A generated source has two such texts, one for a compiler that is told of V (`__riscv_vector`) and the portable one,
which gives the same bits on any machine.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rvv_inductor.errors import InductorError

INCLUDE = Path(__file__).parent / "include"

CHECKOUT = INCLUDE / "../../../../../csrc"
"""Where the kernels are in a checkout; a wheel has copies of them in `include/`."""

OPEN = (
    "#pragma GCC diagnostic push",
    '#pragma GCC diagnostic ignored "-Wunused-function"',
    '#pragma GCC diagnostic ignored "-Wunused-const-variable"',
    "namespace {",
)
CLOSE = ("}  // namespace", "#pragma GCC diagnostic pop")

_QUOTED = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
_SYSTEM = re.compile(r"^\s*#\s*include\s+<")


@dataclass(frozen=True)
class Kernels:
    """The files, in order, of one operation: with V and without."""

    vector: tuple[str, ...]
    portable: tuple[str, ...]


PACKED = Kernels(
    ("core/packed_linear.cpp", "core/packed_linear_bf16_rvv.cpp", "linear/packed_bf16.h"),
    ("core/packed_linear.cpp", "core/packed_linear_portable.cpp", "linear/packed_bf16.h"),
)
ROW_MAJOR = Kernels(
    ("core/row_major_linear.cpp", "core/row_major_linear_bf16_rvv.cpp", "linear/row_major_bf16.h"),
    ("core/row_major_linear.cpp", "core/row_major_linear_portable.cpp", "linear/row_major_bf16.h"),
)


@functools.cache
def text_of(kernels: Kernels) -> str:
    """What a generated source has before its function. Raises InductorError where a file is missing."""
    return "\n".join(
        ("#if defined(__riscv_vector)", _one(kernels.vector), "#else", _one(kernels.portable), "#endif", "")
    )


def files_of(*several: Kernels) -> list[str]:
    """The names of all files that these operations are made of, sorted."""
    names: dict[str, None] = {}
    for kernels in several:
        for roots in (kernels.vector, kernels.portable):
            names.update(_joined(roots)[0])
    return sorted(names)


def path_of(name: str) -> Path:
    """The file of that name in `include/`, else in the checkout. Raises InductorError."""
    for folder in (INCLUDE, CHECKOUT):
        if (folder / name).is_file():
            return folder / name
    raise InductorError(
        f"the kernel source {name} is in neither {INCLUDE} nor {CHECKOUT}", mend="install the wheel again"
    )


def _one(roots: Sequence[str]) -> str:
    """One text in an unnamed namespace: what nothing uses is not compiled, whatever the library has of it."""
    _, system, lines = _joined(roots)
    return "\n".join((*system, *OPEN, *lines, *CLOSE))


def _joined(roots: Sequence[str]) -> tuple[dict[str, None], dict[str, None], list[str]]:
    """Files, `#include <...>` lines, each once, and all other lines in the order of inclusion."""
    seen: dict[str, None] = {}
    system: dict[str, None] = {}
    lines: list[str] = []

    def add(name: str) -> None:
        if name in seen:
            return
        seen[name] = None
        for line in path_of(name).read_text(encoding="ascii").splitlines():
            if quoted := _QUOTED.match(line):
                add(quoted[1])
            elif _SYSTEM.match(line):
                system[line.strip()] = None
            elif line.strip() != "#pragma once":
                lines.append(line)

    for root in roots:
        add(root)
    return seen, system, lines
