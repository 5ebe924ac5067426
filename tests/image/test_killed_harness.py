"""A harness that is killed takes the command it runs in private mounts with it. Needs root, and no network."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rvvbench.errors import RvvbenchError
from rvvbench.image import mmdebstrap

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("unshare", "setpriv")), reason="needs root"
    ),
]

# As mmdebstrap: the first process ignores SIGTERM and waits for its child, which tidies up on it.
COMMAND = """
import os, pathlib, signal, subprocess, sys
folder = pathlib.Path(sys.argv[1])
child = subprocess.Popen([sys.executable, "-c", '''
import os, pathlib, signal, sys
folder = pathlib.Path(sys.argv[1])
def end(number, frame):
    (folder / "tidied").touch()
    sys.exit(1)
signal.signal(signal.SIGTERM, end)
(folder / "pids.new").write_text(f"{os.getppid()} {os.getpid()}")
(folder / "pids.new").rename(folder / "pids")
while True:
    signal.pause()
''', sys.argv[1]])
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.exit(child.wait())
"""

HARNESS = """
import io, pathlib, sys
from rvvbench.image import mmdebstrap
folder = pathlib.Path(sys.argv[1])
mmdebstrap.run([sys.executable, "-c", sys.argv[2], sys.argv[1]], phase="x", progress=lambda phase, line: None,
               log=io.StringIO(), scratch=folder / "scratch", in_memory=False)
"""


def until(done: Callable[[], bool], timeout_s: float = 15.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_what_it_runs_tidies_up_and_ends(tmp_path: Path, number: signal.Signals) -> None:
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, str(tmp_path), COMMAND], stderr=subprocess.DEVNULL)
    pids: list[int] = []
    try:
        until((tmp_path / "pids").exists)
        pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        harness.send_signal(number)
        harness.wait(timeout=15)
        until(lambda: not any(lives(pid) for pid in pids))
        assert (tmp_path / "tidied").exists()
    finally:
        harness.kill()
        harness.wait()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_output_and_exit_code_come_through(tmp_path: Path) -> None:
    def run(script: str) -> list[str]:
        return mmdebstrap.run(
            ["sh", "-c", script],
            phase="x",
            progress=lambda phase, line: None,
            log=Log(),
            scratch=tmp_path / "scratch",
        )

    assert run("echo said; echo also >&2") == ["said", "also"]
    with pytest.raises(RvvbenchError, match="it broke"):
        run("echo 'E: it broke'; exit 7")


class Log(io.StringIO):
    """A log with a name, as a file has."""

    name = "x.log"
