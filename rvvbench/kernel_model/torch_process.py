"""A Python program of kernels/bench in the runtime image, under this machine's emulator, with a library's operators.

With one address space of its own the emulator puts a library at the same address at every start: a first run tells
where, a second one logs what is executed there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench import project
from rvvbench.engine.container import ContainerSpec, Mount, run_container
from rvvbench.engine.service import Engine
from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model import emulator, log_pipe

MARK = 0x7000_0000
MARK_STRIDE = 0x10
"""Where the programs put functions that mark places in the log (kernels/bench/marks.py)."""

ADDRESS_SPACE = "0x1000000000"
TIMEOUT_S = 7200.0


def mark_address(number: int) -> int:
    """Of mark `number`, 0 being MARK."""
    return MARK + number * MARK_STRIDE


@dataclass(frozen=True)
class TorchProcess:
    """What is run: the image, the program's name in kernels/bench, the library that it loads."""

    engine: Engine
    image_id: str
    program: str
    library: Path

    @property
    def library_path(self) -> str:
        """The library in the container."""
        return f"/library/{self.library.name}"

    def run(self, out: Path, arguments: Sequence[str], emulator_options: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The lines of JSON that the program prints.

        It is given the library and `arguments`; `out` is /out. Raises RvvbenchError with its words where it fails.
        """
        qemu = Path(emulator.qemu()).resolve()
        ended = run_container(
            self.engine,
            ContainerSpec(
                image=self.image_id,
                command=(
                    *("/rvvbench/qemu", "-cpu", emulator.CPU, "-R", ADDRESS_SPACE, *emulator_options),
                    *("/usr/bin/python3", f"/rvvbench/bench/{self.program}", self.library_path, *arguments),
                ),
                mounts=(
                    Mount(qemu, "/rvvbench/qemu"),
                    Mount(project.root() / "kernels" / "bench", "/rvvbench/bench"),
                    Mount(self.library, self.library_path),
                    Mount(out, "/out", writable=True),
                ),
                env={"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
                timeout_s=TIMEOUT_S,
            ),
        )
        if ended.exit_code != 0 or ended.timed_out:
            said = ended.output.strip()[-2000:] or f"exit {ended.exit_code}"
            raise RvvbenchError(
                f"its operators cannot be called: {f'no end after {TIMEOUT_S:.0f} s' if ended.timed_out else said}",
                where=str(self.library),
                mend="build it for riscv64 against the torch of the runtime image",
            )
        return [json.loads(line) for line in ended.output.splitlines() if line.startswith("{")]

    def run_logged(
        self,
        out: Path,
        arguments: Sequence[str],
        code: Sequence[tuple[int, int]],
        marks: int,
        reader: log_pipe.Reader,
        shown: Callable[[], None],
    ) -> list[dict[str, Any]]:
        """As `run`; `reader` is fed what is executed in `code`, ranges [begin, end) of addresses, and `marks` marks."""
        log = out / "log"
        os.mkfifo(log)
        options = emulator.log_options("/out/log", *code, (MARK, mark_address(marks)))
        with log_pipe.read(log, reader, shown):
            return self.run(out, arguments, options)
