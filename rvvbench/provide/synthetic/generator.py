"""Writing a synthetic checkpoint to a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench.provide.synthetic import safetensors
from rvvbench.provide.synthetic.architecture import Architecture, read_architecture
from rvvbench.provide.synthetic.tokenizer import json_bytes, tokenizer_files
from rvvbench.provide.synthetic.weights import recipe

Progress = Callable[[int, int], None]
"""Called with (bytes written, bytes in all), now and then."""

WEIGHTS_FILE = "model.safetensors"


@dataclass(frozen=True)
class WrittenFile:
    """What was written: SHA-256 (64 hex digits) and size in bytes."""

    sha256: str
    size: int


def small_files(arch: Architecture, config: Mapping[str, Any]) -> dict[str, bytes]:
    """Every file of the checkpoint but the weights, by name."""
    generation = {key: config[key] for key in ("bos_token_id", "eos_token_id") if config.get(key) is not None}
    return {
        "config.json": json_bytes(dict(config), indent=2),
        "generation_config.json": json_bytes({**generation, "do_sample": False}, indent=2),
        **tokenizer_files(arch),
    }


def generate(
    config: Mapping[str, Any], seed: int, folder: Path, progress: Progress | None = None
) -> dict[str, WrittenFile]:
    """Write the checkpoint of `config` (a whole config.json) and `seed` into the existing `folder`; the files by name.

    Holds a few megabytes at a time beyond the planted entries of one tensor. `ManifestError` for a config that the
    generator cannot write.
    """
    arch = read_architecture(config)
    written: dict[str, WrittenFile] = {}
    for name, content in small_files(arch, config).items():
        (folder / name).write_bytes(content)
        written[name] = WrittenFile(hashlib.sha256(content).hexdigest(), len(content))
    written[WEIGHTS_FILE] = _write_weights(arch, seed, folder / WEIGHTS_FILE, progress)
    return dict(sorted(written.items()))


def _write_weights(arch: Architecture, seed: int, path: Path, progress: Progress | None) -> WrittenFile:
    shapes = arch.tensors()
    digest = hashlib.sha256()
    total = sum(safetensors.tensor_bytes(shape) for shape in shapes.values())
    header = safetensors.header(shapes)
    size = 0
    with path.open("wb") as file:
        digest.update(header)
        file.write(header)
        for name, shape in shapes.items():
            before = size
            for chunk in recipe(arch, seed, name).chunks():
                content = chunk.astype("<u2", copy=False).tobytes()
                digest.update(content)
                file.write(content)
                size += len(content)
                if progress is not None:
                    progress(size, total)
            if size - before != safetensors.tensor_bytes(shape):
                raise AssertionError(f"{name}: wrote {size - before} bytes of {safetensors.tensor_bytes(shape)}")
    return WrittenFile(digest.hexdigest(), size + len(header))
