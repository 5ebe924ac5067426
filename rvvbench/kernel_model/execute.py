"""Starting a kernel program here or under QEMU, with a limit on its time."""

from __future__ import annotations

import subprocess
import time

from rvvbench.kernel_model.correctness import Ended, Run
from rvvbench.kernel_model.emulator import qemu

TIMEOUT_S = 900.0


def execute(run: Run, arguments: tuple[str, ...]) -> Ended:
    """Run to the end. Ctrl-C ends it too: it is in the terminal's process group."""
    emulated = [qemu(), "-cpu", run.machine.cpu] if run.machine.cpu is not None else []
    started = time.monotonic()
    try:
        done = subprocess.run(
            [*emulated, str(run.program), *run.machine.told, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ended(None, "", "", time.monotonic() - started)
    return Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - started)
