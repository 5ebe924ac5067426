"""The safetensors format: eight bytes of header length (little endian), a JSON header, the tensors' bytes in a row.

Format: https://github.com/huggingface/safetensors (README, "Format"). The header is padded with spaces to a multiple of
eight bytes, so that the tensors are aligned.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

BF16_BYTES = 2


def header(shapes: Mapping[str, tuple[int, ...]]) -> bytes:
    """The length and the header of a file that holds BF16 tensors of these shapes, in this order, without gaps."""
    entries: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, shape in shapes.items():
        size = tensor_bytes(shape)
        entries[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def tensor_bytes(shape: tuple[int, ...]) -> int:
    """Bytes of a BF16 tensor."""
    count = 1
    for extent in shape:
        count *= extent
    return count * BF16_BYTES
