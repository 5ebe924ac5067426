"""The checkpoint that is quantised: configuration, tensors in however many files, and which of them become codes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rvvbench.errors import RvvbenchError
from rvvbench.provide.hub import wanted
from rvvbench.provide.safetensors import StoredTensor, stored_tensors
from rvvbench.provide.synthetic.stream import from_bf16

ARCHITECTURES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
LINEARS = (
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
)  # fmt: skip
"""The linears of a decoder layer, as these architectures name them."""

PIECE_ELEMENTS = 1 << 18
"""Elements read at a time: bounds the memory, changes no bit."""


@dataclass(frozen=True)
class Source:
    """A checkpoint of one of `ARCHITECTURES`. `others` are the files beside weights, their index and config.json."""

    folder: Path
    config: Mapping[str, Any]
    tensors: Mapping[str, StoredTensor]
    others: tuple[Path, ...]

    def is_linear(self, name: str) -> bool:
        """Whether a tensor is the weight of a linear of a decoder layer."""
        return re.fullmatch(rf"model\.layers\.\d+\.({'|'.join(map(re.escape, LINEARS))})\.weight", name) is not None


def open_checkpoint(folder: Path) -> Source:
    """The checkpoint in `folder`. Raises RvvbenchError, with the file, for one that cannot be quantised."""
    config = _config(folder / "config.json")
    tensors: dict[str, StoredTensor] = {}
    for path in sorted(folder.glob("*.safetensors")):
        try:
            found = stored_tensors(path)
        except ValueError as error:
            raise RvvbenchError(f"{path.name} {error}", where=str(path)) from error
        for name in sorted(tensors.keys() & found.keys()):
            raise RvvbenchError(f"{name} is also in {tensors[name].path.name}", where=str(path))
        tensors |= found
    others = tuple(path for path in sorted(folder.iterdir()) if path.is_file() and _accompanies(path.name))
    source = Source(folder, config, tensors, others)
    for name in linear_names(config):
        if name not in tensors:
            raise RvvbenchError(f"the checkpoint has no {name}, which its config.json promises", where=str(folder))
    for name, stored in tensors.items():
        if source.is_linear(name) and (stored.tensor.dtype not in _AS_FLOAT or len(stored.tensor.shape) != 2):
            raise RvvbenchError(
                f"{name} is {stored.tensor.dtype} {list(stored.tensor.shape)}, not a matrix of BF16 or F16",
                where=str(stored.path),
            )
    return source


def linear_names(config: Mapping[str, Any]) -> list[str]:
    """Names of the weights that become codes."""
    layers = range(int(config["num_hidden_layers"]))
    return [f"model.layers.{layer}.{linear}.weight" for layer in layers for linear in LINEARS]


def pieces(stored: StoredTensor) -> Iterator[bytes]:
    """The bytes of a tensor, as they are."""
    with stored.path.open("rb") as file:
        file.seek(stored.offset)
        left = stored.tensor.bytes
        while left:
            piece = file.read(min(left, 2 * PIECE_ELEMENTS))
            if not piece:
                raise RvvbenchError("the file ends before its last tensor does", where=str(stored.path))
            left -= len(piece)
            yield piece


def row_blocks(stored: StoredTensor) -> Iterator[NDArray[np.float32]]:
    """The numbers of a BF16 or F16 matrix [n, k], exact, in blocks of whole rows [some, k]."""
    rows, columns = stored.tensor.shape
    step = max(1, PIECE_ELEMENTS // columns)
    with stored.path.open("rb") as file:
        file.seek(stored.offset)
        for first in range(0, rows, step):
            count = min(step, rows - first)
            block = file.read(2 * count * columns)
            if len(block) != 2 * count * columns:
                raise RvvbenchError("the file ends before its last tensor does", where=str(stored.path))
            yield _AS_FLOAT[stored.tensor.dtype](block).reshape(count, columns)


_AS_FLOAT: dict[str, Callable[[bytes], NDArray[np.float32]]] = {
    "BF16": lambda block: from_bf16(np.frombuffer(block, "<u2")),
    "F16": lambda block: np.frombuffer(block, "<f2").astype(np.float32),
}


def _config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        architecture, layers = config["architectures"][0], config["num_hidden_layers"]
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise RvvbenchError(f"no config.json that says architecture and layers: {error}", where=str(path)) from error
    if architecture not in ARCHITECTURES or type(layers) is not int:
        raise RvvbenchError(
            f"{architecture} with {layers} layers is none of the models that can be quantised",
            where=str(path),
            mend=f"a checkpoint of {', '.join(ARCHITECTURES)}",
        )
    if config.get("quantization_config") is not None:
        raise RvvbenchError(
            "the checkpoint is quantised already (quantization_config)", where=str(path), mend="start from BF16 or FP16"
        )
    return dict(config)


def _accompanies(name: str) -> bool:
    return wanted(name) and name != "config.json" and not name.endswith((".safetensors", ".safetensors.index.json"))
