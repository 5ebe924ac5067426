"""Synthetic checkpoints: valid Hugging Face checkpoints made from a config and a seed, bit-identical on every machine.

`docs/synthetic-checkpoints.md` tells the whole algorithm (`rvvbench-synthetic/1`); the modules hold it: `stream`
(random numbers, rounding), `architecture` (shapes), `codes` and `weights` (what the numbers are and why), `dense` (a
tensor), `safetensors`, `tokenizer`, `generator`.
"""

from rvvbench.provide.synthetic.generator import Progress, WrittenFile, generate
from rvvbench.provide.synthetic.stream import ALGORITHM

__all__ = ["ALGORITHM", "Progress", "WrittenFile", "generate"]
