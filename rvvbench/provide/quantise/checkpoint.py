"""Writing a W8A8 checkpoint to a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvvbench.errors import RvvbenchError
from rvvbench.provide import safetensors
from rvvbench.provide.file_hash import WrittenFile
from rvvbench.provide.quantise.rows import ALGORITHM, quantise_rows
from rvvbench.provide.quantise.source import Source, open_checkpoint, pieces, row_blocks
from rvvbench.provide.safetensors import Progress, Tensor
from rvvbench.provide.synthetic.tokenizer import json_bytes

WEIGHTS_FILE = "model.safetensors"

QUANTIZATION_CONFIG = {"quant_method": "w8a8_int8", "algorithm": ALGORITHM}
"""What config.json gets: SGLang takes codes for weights where nothing says that they are codes."""


def quantise(source: Path, folder: Path, progress: Progress | None = None) -> dict[str, WrittenFile]:
    """Write the W8A8 form of the checkpoint in `source` into the existing, empty `folder`; the files by name.

    Holds a few megabytes at a time. Raises RvvbenchError, with the file, for a checkpoint that cannot be quantised.
    """
    checkpoint = open_checkpoint(source)
    contents = {path.name: path.read_bytes() for path in checkpoint.others}
    written: dict[str, WrittenFile] = {}
    for name, content in {**contents, "config.json": config_file(checkpoint.config)}.items():
        (folder / name).write_bytes(content)
        written[name] = WrittenFile(hashlib.sha256(content).hexdigest(), len(content))
    written[WEIGHTS_FILE] = _write_weights(checkpoint, folder / WEIGHTS_FILE, progress)
    return dict(sorted(written.items()))


def config_file(config: Mapping[str, Any]) -> bytes:
    """The config.json of the quantised form of a checkpoint with this `config`."""
    return json_bytes({**config, "quantization_config": QUANTIZATION_CONFIG}, indent=2)


def scale_name(weight: str) -> str:
    """The name of a weight's scales."""
    return f"{weight}_scale"


def layout(source: Source) -> dict[str, Tensor]:
    """Every tensor of the quantised checkpoint, sorted by name: the order in the file."""
    tensors: dict[str, Tensor] = {}
    for name, stored in source.tensors.items():
        if source.is_linear(name):
            tensors[name] = Tensor("I8", stored.tensor.shape)
            tensors[scale_name(name)] = Tensor("F32", (stored.tensor.shape[0], 1))
        else:
            tensors[name] = stored.tensor
    return dict(sorted(tensors.items()))


def _write_weights(source: Source, path: Path, progress: Progress | None) -> WrittenFile:
    # The scales of a weight, from when it is written until they are: their name comes later in the order.
    scales: dict[str, list[NDArray[np.float32]]] = {}

    def content(name: str) -> Iterator[bytes]:
        if name in scales:
            for some in scales.pop(name):
                yield some.astype("<f4", copy=False).tobytes()
        elif source.is_linear(name):
            found = scales.setdefault(scale_name(name), [])
            for block in row_blocks(source.tensors[name]):
                try:
                    codes, of_rows = quantise_rows(block)
                except ValueError as error:
                    where = f"{source.tensors[name].path}: {name}"
                    raise RvvbenchError(f"a weight cannot be quantised: {error}", where=where) from error
                found.append(of_rows)
                yield codes.tobytes()
        else:
            yield from pieces(source.tensors[name])

    try:
        return safetensors.write(path, layout(source), content, progress)
    except ValueError as error:
        raise RvvbenchError(
            f"no file can be written that readers can map: {error}", where=str(source.folder)
        ) from error
