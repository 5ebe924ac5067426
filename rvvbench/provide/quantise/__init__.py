"""W8A8 checkpoints for SGLang's `--quantization w8a8_int8`, made from BF16 or FP16 ones: same bytes on every machine.

`docs/quantised-checkpoints.md` tells the algorithm (`rvvbench-w8a8/1`); the modules hold it: `rows` (the numbers),
`source` (the checkpoint that is read), `checkpoint` (the one that is written).
"""

from rvvbench.provide.quantise.checkpoint import quantise
from rvvbench.provide.quantise.rows import ALGORITHM

__all__ = ["ALGORITHM", "quantise"]
