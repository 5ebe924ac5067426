"""Running a static riscv64 program under QEMU with every executed block logged into a pipe."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench.errors import EnvironmentLacks, RvvbenchError
from rvvbench.kernel_model.trace import Trace, TraceReader

CPU = "rv64,v=true,vlen=256,zvfh=true,zfh=true,zba=true,zbb=true,zbs=true"
"""What the X60 has, as QEMU says it (manifests/boards/qemu-k1.yaml)."""
VLEN_BITS = 256

_PIECE_BYTES = 1 << 20
_GATHER_S = 0.002


@dataclass(frozen=True)
class Traced:
    """The log, and what the program itself printed: one JSON object for each case."""

    trace: Trace
    said: list[dict[str, Any]]


def qemu() -> str:
    """The emulator's program; raises EnvironmentLacks where there is none."""
    found = shutil.which("qemu-riscv64-static") or shutil.which("qemu-riscv64")
    if found is None:
        raise EnvironmentLacks("QEMU user emulation is not installed", where="PATH", mend="make setup")
    return found


def version() -> str:
    """The first line of what the emulator says of itself."""
    done = subprocess.run([qemu(), "--version"], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.splitlines()[0].strip()


def log_options(log: str, *code: tuple[int, int]) -> tuple[str, ...]:
    """What makes the emulator log every block that it executes at addresses in `code`, ranges [begin, end)."""
    ranges = ",".join(f"{begin:#x}..{end - 1:#x}" for begin, end in code)
    return "-d", "exec,nochain,in_asm", "-D", log, "-dfilter", ranges


def trace_program(
    program: Path,
    cases: Sequence[str],
    *,
    calls: int,
    mark: int,
    code: tuple[int, int],
    progress: Callable[[str], None],
    stop: threading.Event | None = None,
) -> Traced:
    """Execute `cases`, each `calls` and `2 * calls` times, and count blocks with addresses in `code` [begin, end).

    `mark` is the address of the program's `rvvbench_mark`. Raises RvvbenchError with the program's words where it
    fails, and soon after `stop` was set.
    """
    reader = TraceReader(mark)
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, _PIECE_BYTES)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                [
                    *(qemu(), "-cpu", CPU, *log_options(f"/dev/fd/{writing}", code)),
                    *(str(program), str(calls), *cases),
                ],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                pass_fds=(writing,),
                env={},
            )
        finally:
            os.close(writing)
        try:
            with os.fdopen(reading, "rb", buffering=0) as log:
                shown = 0
                while piece := log.read(_PIECE_BYTES):
                    reader.feed(piece)
                    if stop is not None and stop.is_set():
                        raise RvvbenchError("counting was stopped", where=f"{program.name} under QEMU")
                    if len(piece) < _PIECE_BYTES // 2:
                        # The emulator writes line by line; being woken for each would take most of the time.
                        time.sleep(_GATHER_S)
                    if len(reader.trace.steps) != shown:
                        shown = len(reader.trace.steps)
                        progress(f"{shown // 2} of {len(cases)} cases")
            exit_code = process.wait()
        finally:
            process.kill()
            process.wait()
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read().decode(errors="replace"))
    said = texts[0].splitlines()
    if exit_code != 0 or len(said) != len(cases):
        at = cases[len(said)] if len(said) < len(cases) else "the end"
        raise RvvbenchError(
            f"the traced program ended with {exit_code} at {at}: {texts[1].strip()[-2000:] or 'it said nothing'}",
            where=f"{program.name} under QEMU",
        )
    return Traced(reader.close(), [json.loads(line) for line in said])
