"""SGLang on riscv64 without a change to SGLang: an out-of-tree CPU platform, and packed linears for the kernels of
`sgl_kernel`.

This file imports nothing: Python executes it at every start, through `sglang_rvv.pth`.
"""

__version__ = "0.1.0"

SGLANG_CHECKED = "0.5.15"
"""The SGLang release whose functions this package was checked against; every error names it."""
