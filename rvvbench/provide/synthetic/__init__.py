"""Synthetic checkpoints: valid Hugging Face checkpoints made from a config and a seed, bit-identical on every machine.

`docs/synthetic-checkpoints.md` tells the whole algorithm (`rvvbench-synthetic/1`); the modules hold it: `stream`
(random numbers, rounding), `architecture` (shapes), `codes` and `weights` (what the numbers are and why), `dense` (a
tensor), `tokenizer`, `generator`.
"""

from rvvbench.provide.file_hash import WrittenFile
from rvvbench.provide.safetensors import Progress
from rvvbench.provide.synthetic.generator import generate
from rvvbench.provide.synthetic.stream import ALGORITHM

__all__ = ["ALGORITHM", "Progress", "WrittenFile", "generate"]
