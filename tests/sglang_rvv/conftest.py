"""The plugin is tested from its sources; the kernels are a double in pure torch, imported only where a test says so."""

from __future__ import annotations

import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "kernels" / "python" / "sglang_rvv" / "src"
sys.path.insert(0, str(SOURCE))
