"""The safetensors format: eight bytes of header length (little endian), a JSON header, the tensors' bytes in a row.

Format: https://github.com/huggingface/safetensors (README, "Format"). The header is padded with spaces to a multiple of
eight bytes, so that the tensors are aligned.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from rvvbench.provide.file_hash import WrittenFile

Progress = Callable[[int, int], None]
"""Called with (bytes of tensors written, bytes in all), now and then."""

DTYPE_BYTES = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1,
    "I16": 2, "U16": 2, "F16": 2, "BF16": 2,
    "I32": 4, "U32": 4, "F32": 4,
    "I64": 8, "U64": 8, "F64": 8,
}  # fmt: skip
"""Bytes of an element by the format's name of its type."""


@dataclass(frozen=True)
class Tensor:
    """Type (a key of `DTYPE_BYTES`) and shape of a tensor."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return prod(self.shape) * DTYPE_BYTES[self.dtype]


@dataclass(frozen=True)
class StoredTensor:
    """A tensor and where its bytes begin: `offset` counts from the beginning of the file."""

    tensor: Tensor
    path: Path
    offset: int


def header(tensors: Mapping[str, Tensor]) -> bytes:
    """The length and the header of a file that holds these tensors, in this order, without gaps.

    Raises ValueError for a tensor that would not begin at a multiple of its element's size: readers map the file and
    cannot have it.
    """
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, tensor in tensors.items():
        if offset % DTYPE_BYTES[tensor.dtype]:
            raise ValueError(f"{name} ({tensor.dtype}) would begin at byte {offset} of the tensors")
        entries[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + tensor.bytes],
        }
        offset += tensor.bytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def write(
    path: Path,
    tensors: Mapping[str, Tensor],
    content: Callable[[str], Iterable[bytes]],
    progress: Progress | None = None,
) -> WrittenFile:
    """Write these tensors in this order; `content(name)` gives a tensor's bytes in pieces. Raises as `header` does."""
    start = header(tensors)
    total = sum(tensor.bytes for tensor in tensors.values())
    digest = hashlib.sha256(start)
    size = 0
    with path.open("wb") as file:
        file.write(start)
        for name, tensor in tensors.items():
            before = size
            for piece in content(name):
                digest.update(piece)
                file.write(piece)
                size += len(piece)
                if progress is not None:
                    progress(size, total)
            if size - before != tensor.bytes:
                raise AssertionError(f"{name}: wrote {size - before} bytes of {tensor.bytes}")
    return WrittenFile(digest.hexdigest(), size + len(start))


def stored_tensors(path: Path) -> dict[str, StoredTensor]:
    """The tensors of a file by name. Raises ValueError for what is no such file, or not all of one."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 2 <= length <= size - 8:
            raise ValueError(f"has {size} bytes and no header of {length}")
        text = file.read(length)
    stored = {}
    for name, (tensor, begin, end) in _entries(text).items():
        if end - begin != tensor.bytes or not 0 <= begin <= end <= size - 8 - length:
            raise ValueError(f"has bytes {begin} to {end} for {name} of {tensor.bytes} bytes")
        stored[name] = StoredTensor(tensor, path, 8 + length + begin)
    return stored


def _entries(text: bytes) -> dict[str, tuple[Tensor, int, int]]:
    """Each tensor of a header, and where it begins and ends among the tensors' bytes."""
    found = {}
    try:
        for name, entry in json.loads(text).items():
            if name != "__metadata__":
                begin, end = map(int, entry["data_offsets"])
                found[name] = (Tensor(str(entry["dtype"]), tuple(map(int, entry["shape"]))), begin, end)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"has a header that cannot be read: {error}") from error
    for name, (tensor, _, _) in found.items():
        if tensor.dtype not in DTYPE_BYTES:
            raise ValueError(f"holds {name} of the unknown type {tensor.dtype}")
    return found
