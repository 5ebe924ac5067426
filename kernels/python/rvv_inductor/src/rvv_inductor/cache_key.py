"""What TorchInductor's cache keys leave out and must not: this package, its headers, and the vector ISA.

Inductor's graph key has neither ISA, compiler flags nor headers in it, and the key of a compiled library has the paths
of headers, not their content. `tag()` goes into the first, `sources_digest()` as a macro into the second.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from rvv_inductor import __version__, hwprobe

PACKAGE = Path(__file__).resolve().parent
ISA = "rv64gcv_zicbop"
"""What generated code is compiled for. Without zvl*b: one library runs at every VLEN from 128 on. Zicbop's prefetches
are instructions that do nothing where it is not there.
"""
NO_ISA = "none"
"""Where the machine has no V: torch's own scalar code."""


def tag(isa: str | None = None, package: Path = PACKAGE) -> str:
    """`rvv_inductor-VERSION-ISA-DIGEST`; by default of this machine's ISA."""
    return f"rvv_inductor-{__version__}-{isa or isa_here()}-{sources_digest(package)}"


def isa_here() -> str:
    """The ISA that this machine gets."""
    return ISA if hwprobe.has_vector() else NO_ISA


@cache
def sources_digest(package: Path = PACKAGE) -> str:
    """16 hex digits of SHA-256 over every header, template and module of the package, names and content."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(package).as_posix()}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()[:16]


def joined(before: str, ours: str) -> str:
    """The tag to set where `before` is set already, by somebody else or by us."""
    others = [part for part in before.split("+") if part and not part.startswith("rvv_inductor-")]
    return "+".join([*others, ours])


def apply(ours: str) -> str:
    """Make `ours` part of torch's graph keys from now on; gives the whole tag."""
    import torch.compiler.config as config

    whole = joined(config.cache_key_tag, ours)
    config.cache_key_tag = whole
    return whole
