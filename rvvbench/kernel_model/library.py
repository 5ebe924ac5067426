"""Any library with operators below `torch.ops.sgl_kernel`, called by torch in the runtime image and counted there.

The emulator of this machine runs the image's Python, once to see where the library is put in memory, once with what it
executes at those addresses logged. What the library calls of others (torch, the C library) is not counted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench.engine.service import Engine
from rvvbench.errors import RvvbenchError
from rvvbench.kernel_model.cases import Case
from rvvbench.kernel_model.emulator import Traced
from rvvbench.kernel_model.model import CALLS, Results, Units, counted_cases, modelled_rows, texts_of
from rvvbench.kernel_model.program import Program
from rvvbench.kernel_model.report import Row
from rvvbench.kernel_model.toolchain import Toolchain
from rvvbench.kernel_model.torch_process import MARK, TorchProcess
from rvvbench.kernel_model.trace import TraceReader
from rvvbench.progress import Progress

MARKS = 2
"""How many library_driver.py has: one around calls, one after each call."""


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
            arguments = _arguments(Path(folder), ())
            base, _ = _said(self._process(library).run(Path(folder), arguments))
        return base

    def _count(
        self, library: Path, base: int, program: Program, sizes: Mapping[Case, Units], progress: Progress
    ) -> Results:
        texts = texts_of(sizes)
        code = (min(program.instructions), max(program.instructions) + 1)
        reader = TraceReader(MARK)

        def shown() -> None:
            progress.line(f"{reader.stretches // 2} of {len(texts)} cases")

        with tempfile.TemporaryDirectory(prefix="rvvbench-") as name:
            folder = Path(name)
            arguments = _arguments(folder, texts)
            loaded, said = _said(self._process(library).run_logged(folder, arguments, (code,), MARKS, reader, shown))
        if loaded != base:
            raise RvvbenchError(
                f"it was loaded at {loaded:#x}, without the log at {base:#x}: what was logged is not its code",
                where=str(library),
            )
        return counted_cases(Traced(reader.close(), said), sizes, program, bool)

    def _process(self, library: Path) -> TorchProcess:
        return TorchProcess(self.engine, self.image_id, "library_driver.py", library)


def _arguments(out: Path, cases: Sequence[str]) -> tuple[str, ...]:
    (out / "cases").write_text("".join(f"{case}\n" for case in cases))
    return str(CALLS), "/out/cases"


def _said(lines: list[dict[str, Any]]) -> tuple[int, list[dict[str, Any]]]:
    """Where the library was loaded, and what the driver says of each case."""
    where, *said = lines
    return int(where["base"]), said
