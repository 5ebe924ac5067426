"""The compiler as a process may call it: a wrapper that writes every call down, and what the calls were. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

REAL = "g++"
"""Of the image. Inductor tells compilers apart by their path: this word must be in that of the wrapper too, and that of
no other compiler. clang++ would bring a second OpenMP beside PyTorch's."""

FOLDER = "/rvvbench/runner/compiler"
WRAPPER = f"{FOLDER}/{REAL}"
LOG_NAME = "compiler.log"

SCRIPT = f"""#!/bin/sh
printf '%s\\n' "$*" >> /rvvbench/out/{LOG_NAME} || exit 70
exec /usr/bin/{REAL} "$@"
"""
"""One line a call, on disk before the compiler starts. A call that cannot be written down does not happen."""

_QUERIES = ("--version", "-v", "-dumpversion", "-dumpfullversion", "-dumpmachine")
_ASKS = "-print-"


@dataclass(frozen=True)
class Call:
    """A call of the compiler. `query`: what it was only asked for, None where it compiled, linked or preprocessed."""

    query: str | None
    source: str | None
    output: str | None
    march: str | None

    def plain(self) -> dict[str, Any]:
        return {"query": self.query, "source": self.source, "output": self.output, "march": self.march}


def calls(log: str) -> tuple[Call, ...]:
    """The calls of a log, in order. What is not known to be a question counts as compiling."""
    return tuple(_call(line.split()) for line in log.splitlines() if line.strip())


def _call(words: list[str]) -> Call:
    if all(word in _QUERIES or word.startswith(_ASKS) for word in words):
        return Call(" ".join(words), None, None, None)
    sources = [word for word in words if word.endswith((".cpp", ".cc", ".c", ".h", ".o"))]
    marches = [word.partition("=")[2] for word in words if word.startswith("-march=")]
    output = next((after for word, after in pairwise(words) if word == "-o"), None)
    return Call(None, sources[0] if sources else None, output, marches[-1] if marches else None)
