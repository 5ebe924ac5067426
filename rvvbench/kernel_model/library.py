"""Any library with operators below `torch.ops.sgl_kernel`, called by torch in the runtime image and counted there.

The emulator of this machine runs the image's Python, once to see where the library is put in memory, once with what it
executes at those addresses logged. What the library calls of others (torch, the C library) is not counted.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench import project
from rvvbench.engine.container import ContainerSpec, Mount, run_container
from rvvbench.engine.service import Engine
from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model import emulator
from rvvbench.kernel_model.cases import Case
from rvvbench.kernel_model.emulator import Traced
from rvvbench.kernel_model.model import CALLS, Results, Units, counted_cases, modelled_rows, texts_of
from rvvbench.kernel_model.program import Program
from rvvbench.kernel_model.report import Row
from rvvbench.kernel_model.toolchain import Toolchain
from rvvbench.kernel_model.trace import TraceReader
from rvvbench.progress import Progress

MARK = 0x7000_0000
MARKS_END = MARK + 0x20
"""Where library_driver.py puts its mark and what it calls beside the operators."""

ADDRESS_SPACE = "0x1000000000"
"""Of the emulated process: with one of its own, the emulator puts a library at the same address at every start."""

TIMEOUT_S = 7200.0
_PIECE_BYTES = 1 << 20
_PAUSE_S = 0.002


@dataclass(frozen=True)
class Caller:
    """The image whose torch calls the operators."""

    engine: Engine
    image_id: str

    def model(self, library: Path, cases: Sequence[Case], toolchain: Toolchain, progress: Progress) -> list[Row]:
        """A row for every case, in their order. Raises RvvbenchError with torch's words where it does not load."""
        progress.phase(f"finding where {library.name} is loaded")
        base = self._base(library)
        program = toolchain.disassemble(library).moved(base)
        return modelled_rows(
            cases, lambda sizes: self._count(library, base, program, sizes, progress), toolchain, progress
        )

    def _base(self, library: Path) -> int:
        with tempfile.TemporaryDirectory(prefix="rvvbench-") as folder:
            base, _ = self._run(library, Path(folder), (), ())
        return base

    def _count(
        self, library: Path, base: int, program: Program, sizes: Mapping[Case, Units], progress: Progress
    ) -> Results:
        texts = texts_of(sizes)
        first, last = min(program.instructions), max(program.instructions) + 1
        reader = TraceReader(MARK)
        with tempfile.TemporaryDirectory(prefix="rvvbench-") as name:
            folder = Path(name)
            os.mkfifo(folder / "log")
            log = emulator.log_options("/out/log", (first, last), (MARK, MARKS_END))

            def shown() -> None:
                progress.line(f"{len(reader.trace.steps) // 2} of {len(texts)} cases")

            with _read(folder / "log", reader, shown):
                loaded, said = self._run(library, folder, log, texts)
            if loaded != base:
                raise RvvbenchError(
                    f"it was loaded at {loaded:#x}, without the log at {base:#x}: what was logged is not its code",
                    where=str(library),
                )
            traced = Traced(reader.close(), said)
        return counted_cases(traced, sizes, program, bool)

    def _run(
        self, library: Path, out: Path, emulator_options: Sequence[str], cases: Sequence[str]
    ) -> tuple[int, list[dict[str, Any]]]:
        """Where the library was loaded, and what the driver says of each case."""
        (out / "cases").write_text("".join(f"{case}\n" for case in cases))
        driver = project.root() / "kernels" / "bench" / "library_driver.py"
        qemu = Path(emulator.qemu()).resolve()
        at = f"/library/{library.name}"
        ended = run_container(
            self.engine,
            ContainerSpec(
                image=self.image_id,
                command=(
                    *("/rvvbench/qemu", "-cpu", emulator.CPU, "-R", ADDRESS_SPACE, *emulator_options),
                    *("/usr/bin/python3", "/rvvbench/driver.py", at, str(CALLS), "/out/cases"),
                ),
                mounts=(
                    Mount(qemu, "/rvvbench/qemu"),
                    Mount(driver, "/rvvbench/driver.py"),
                    Mount(library, at),
                    Mount(out, "/out", writable=True),
                ),
                env={"OMP_NUM_THREADS": "1"},
                timeout_s=TIMEOUT_S,
            ),
        )
        if ended.exit_code != 0 or ended.timed_out:
            raise RvvbenchError(
                f"its operators cannot be called: {ended.output.strip()[-2000:] or f'exit {ended.exit_code}'}",
                where=str(library),
                mend="build it for riscv64 against the torch of the runtime image",
            )
        where, *said = (json.loads(line) for line in ended.output.splitlines() if line.startswith("{"))
        return int(where["base"]), said


@contextlib.contextmanager
def _read(log: Path, reader: TraceReader, shown: Callable[[], None]) -> Iterator[None]:
    """Reads the named pipe into `reader` until the block is left; raises what reading raised."""
    descriptor = os.open(log, os.O_RDONLY | os.O_NONBLOCK)
    over = threading.Event()
    failed: list[Exception] = []

    def read() -> None:
        cases = 0
        while True:
            last = over.is_set()
            try:
                piece = os.read(descriptor, _PIECE_BYTES)
            except BlockingIOError:
                piece = b""
            if not piece:
                if last:
                    return
                time.sleep(_PAUSE_S)
            elif not failed:
                # After a failure it is read all the same, or the emulator would wait for ever.
                try:
                    reader.feed(piece)
                except Exception as error:
                    failed.append(error)
            if len(reader.trace.steps) != cases:
                cases = len(reader.trace.steps)
                shown()

    thread = threading.Thread(target=read, name="trace")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        os.close(descriptor)
    if failed:
        raise failed[0]
