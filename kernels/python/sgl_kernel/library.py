"""The shared library: loading it, its hash, and what it says about itself."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import torch


def library_path() -> Path:
    """The one file that holds all compiled code of this package."""
    return Path(__file__).with_name("_ops.so")


def load() -> None:
    """Register the operators with torch. Raises OSError where the file is missing or made for another torch."""
    torch.ops.load_library(str(library_path()))


@functools.cache
def library_sha256() -> str:
    """SHA-256 of the library's file, in hex."""
    return hashlib.sha256(library_path().read_bytes()).hexdigest()


def describe() -> dict[str, Any]:
    """`layout_version`, `rvv`, `zvfh`, `vlen_bits` (0 without RVV), `kernels`: the registry, `available` or not."""
    described: dict[str, Any] = json.loads(_text("sgl_kernel_describe_json"))
    return described


def attestation() -> dict[str, Any]:
    """What ran since the last `reset_attestation()`.

    `library_sha256`, and `ops`: for each operator that was called `calls`, `kernels` {name: calls}, and `kernel`, their
    names in one text (a pass with prefill and decode runs several kernels of one operator).
    """
    counted: dict[str, dict[str, int]] = json.loads(_text("sgl_kernel_attestation_json"))
    ops = {
        op: {"kernel": ", ".join(sorted(kernels)), "calls": sum(kernels.values()), "kernels": kernels}
        for op, kernels in counted.items()
    }
    return {"library_sha256": library_sha256(), "ops": ops}


def reset_attestation() -> None:
    """Count from zero again."""
    _functions().sgl_kernel_reset_attestation()


@functools.cache
def _functions() -> ctypes.CDLL:
    functions = ctypes.CDLL(str(library_path()))
    for name in ("sgl_kernel_attestation_json", "sgl_kernel_describe_json"):
        function = getattr(functions, name)
        function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
        function.restype = ctypes.c_size_t
    functions.sgl_kernel_reset_attestation.argtypes = []
    functions.sgl_kernel_reset_attestation.restype = None
    return functions


def _text(name: str) -> str:
    """The text that the C function `name` writes. Its length may grow between two calls, hence the loop."""
    write = getattr(_functions(), name)
    size = 4096
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = write(buffer, size)
        if length < size:
            return buffer.value.decode("ascii")
        size = 2 * length
