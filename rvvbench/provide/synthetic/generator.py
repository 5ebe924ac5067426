"""Writing a synthetic checkpoint to a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rvvbench.provide import safetensors
from rvvbench.provide.file_hash import WrittenFile
from rvvbench.provide.safetensors import Progress
from rvvbench.provide.synthetic.architecture import Architecture, read_architecture
from rvvbench.provide.synthetic.tokenizer import json_bytes, tokenizer_files
from rvvbench.provide.synthetic.weights import recipe

WEIGHTS_FILE = "model.safetensors"


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
    def content(name: str) -> Iterator[bytes]:
        for chunk in recipe(arch, seed, name).chunks():
            yield chunk.astype("<u2", copy=False).tobytes()

    tensors = {name: safetensors.Tensor("BF16", shape) for name, shape in arch.tensors().items()}
    return safetensors.write(path, tensors, content, progress)
