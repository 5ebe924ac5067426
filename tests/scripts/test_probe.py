from __future__ import annotations

import subprocess
from pathlib import Path

from rvvbench.engine.binfmt import probe_program

SCRIPTS = Path(__file__).parents[2] / "scripts"


def test_setup_and_the_harness_ask_with_the_same_program() -> None:
    done = subprocess.run([SCRIPTS / "rvv-probe.sh"], capture_output=True, check=True)
    assert done.stdout == probe_program()
