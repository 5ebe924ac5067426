"""The plugin, and rvv_inductor's pure parts beside it, are tested from their sources; the kernels are a double in pure
torch, imported only where a test says so.
"""

from __future__ import annotations

import sys
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2] / "kernels" / "python"
for source in (PACKAGES / "rvv_inductor" / "src", PACKAGES / "sglang_rvv" / "src"):
    if str(source) not in sys.path:
        sys.path.insert(0, str(source))
