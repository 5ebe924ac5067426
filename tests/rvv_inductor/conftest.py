"""The pure parts of rvv_inductor are tested from their sources, without torch."""

from __future__ import annotations

import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "kernels" / "python" / "rvv_inductor" / "src"
if str(SOURCE) not in sys.path:
    sys.path.insert(0, str(SOURCE))
