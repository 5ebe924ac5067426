"""The toolchain image's llvm-objdump and llvm-mca, run in a container."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from rvvbench.engine.container import ContainerSpec, Mount, run_container
from rvvbench.engine.service import Engine
from rvvbench.errors import EnvironmentLacks
from rvvbench.kernel_model.price import CPU, OPTIONS, Price, Sequence, assembly, parse_prices
from rvvbench.kernel_model.program import Program, parse_disassembly

# What newer boards have besides, so that no kernel's code is unknown to the disassembler.
_ATTRIBUTES = "+v,+zvfh,+zfh,+zba,+zbb,+zbs,+zicbop,+zvfbfwma"
TIMEOUT_S = 900.0


@dataclass(frozen=True)
class Toolchain:
    """The tools of the image `image_id`."""

    engine: Engine
    image_id: str

    def disassemble(self, program: Path) -> Program:
        """The executable code of a riscv64 program or library."""
        script = f"llvm-objdump-22 -d --triple=riscv64 --mattr={_ATTRIBUTES} /in/program > /out/text"
        with tempfile.TemporaryDirectory(prefix="rvvbench-") as folder:
            out = Path(folder)
            self._run(script, out, Mount(program, "/in/program"))
            with (out / "text").open(encoding="utf-8", errors="replace") as lines:
                return parse_disassembly(lines)

    def strip(self, program: Path, to: Path) -> None:
        """A copy without symbols. The emulator then logs shorter lines, and looks up no name for each."""
        with tempfile.TemporaryDirectory(prefix="rvvbench-") as folder:
            self._run("llvm-strip-22 -o /out/stripped /in/program", Path(folder), Mount(program, "/in/program"))
            shutil.copy(Path(folder) / "stripped", to)

    def price(self, wanted: Mapping[int, Set[Sequence]]) -> dict[tuple[str, int], Price]:
        """llvm-mca of all sequences, by number of iterations."""
        prices: dict[tuple[str, int], Price] = {}
        with tempfile.TemporaryDirectory(prefix="rvvbench-") as folder:
            out = Path(folder)
            asked = [iterations for iterations, sequences in wanted.items() if sequences]
            for iterations in asked:
                (out / f"{iterations}.s").write_text(assembly(wanted[iterations]), encoding="ascii")
            self._run(
                "\n".join(
                    f"llvm-mca-22 {' '.join(OPTIONS)} -iterations={n} -o /out/{n}.json /out/{n}.s" for n in asked
                ),
                out,
            )
            for iterations in asked:
                prices |= parse_prices((out / f"{iterations}.json").read_text(), iterations)
        return prices

    def version(self) -> str:
        """The version of LLVM that prices, one line."""
        with tempfile.TemporaryDirectory(prefix="rvvbench-") as folder:
            said = self._run("llvm-mca-22 --version", Path(folder))
        return next(line.strip() for line in said.splitlines() if "LLVM version" in line)

    def _run(self, script: str, out: Path, *mounts: Mount) -> str:
        ended = run_container(
            self.engine,
            ContainerSpec(
                image=self.image_id,
                command=("sh", "-e", "-c", script),
                mounts=(*mounts, Mount(out, "/out", writable=True)),
                timeout_s=TIMEOUT_S,
            ),
        )
        if ended.exit_code != 0 or ended.timed_out:
            raise EnvironmentLacks(
                f"a tool of the toolchain image failed: {ended.output.strip()[-2000:]}",
                where=script.splitlines()[0].split()[0],
                mend=f"rvvbench image build toolchain; known to work with LLVM 22 and {CPU}",
            )
        return ended.output
