"""What TorchInductor generates for riscv64, with and without VecRVV, compiled and counted under QEMU."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from rvvbench import project
from rvvbench.engine.container import ContainerSpec, Mount, run_container
from rvvbench.errors import EnvironmentLacks
from rvvbench.kernel_model import emulator
from rvvbench.kernel_model.flow import flow_of, steps_of_case
from rvvbench.kernel_model.tally import tally
from rvvbench.kernel_model.toolchain import Toolchain
from rvvbench.kernel_model.vectorised_report import CountedGraph, Executed, VectorisedReport, VectorisedTools
from rvvbench.progress import Progress
from rvvbench.provide.kernels import Build, build_generated
from rvvbench.provide.sysroot import Image

CALLS = 2
MARK = "rvvbench_mark"
TIMEOUT_S = 900.0


def count_graphs(build: Build, host_image: Image, progress: Progress) -> VectorisedReport:
    """Generate in `host_image`, a runtime image of this machine, compile with `build` (riscv64), count.

    Raises EnvironmentLacks where it is not generated or not compiled.
    """
    with tempfile.TemporaryDirectory(prefix="rvvbench-") as name:
        folder = Path(name)
        progress.phase("generating the graphs")
        told = _generate(build, host_image, folder)
        progress.phase("compiling the graphs")
        build_generated(build, folder)
        compiler = (folder / "build.log").read_text(errors="replace").splitlines()[0].strip()
        progress.phase("counting instructions")
        toolchain = Toolchain(build.engine, build.toolchain_image.image_id)
        graphs = []
        for case in told["cases"]:
            progress.line(case["graph"])
            sides = {
                side: _executed(folder / f"{case['graph']}-{side}", case["arguments"][side], toolchain, progress)
                for side in ("scalar", "rvv")
            }
            graphs.append(CountedGraph(graph=case["graph"], shapes=case["shapes"], **sides))
    tools = VectorisedTools(
        torch=told["torch"],
        compiler=compiler,
        qemu=emulator.version(),
        cpu=emulator.CPU,
        toolchain_digest=build.toolchain_image.digest,
        sources=told["sources"],
    )
    return VectorisedReport(tools=tools, calls_counted=CALLS, graphs=graphs)


def _generate(build: Build, host_image: Image, folder: Path) -> dict[str, Any]:
    kernels = project.root() / "kernels"
    ended = run_container(
        build.engine,
        ContainerSpec(
            image=host_image.image_id,
            command=("python3", "/bench/generated_graphs.py", "/out"),
            env={"PYTHONPATH": "/site", "OMP_NUM_THREADS": "1"},
            mounts=(
                Mount(kernels / "python" / "rvv_inductor" / "src", "/site"),
                Mount(kernels / "bench", "/bench"),
                Mount(folder, "/out", writable=True),
            ),
            timeout_s=TIMEOUT_S,
        ),
    )
    cases = folder / "cases.json"
    if ended.exit_code != 0 or not cases.is_file():
        raise EnvironmentLacks(
            f"TorchInductor generated nothing: {ended.output.strip()[-2000:]}",
            where="kernels/bench/generated_graphs.py",
        )
    told: dict[str, Any] = json.loads(cases.read_text())
    return told


def _executed(program: Path, arguments: str, toolchain: Toolchain, progress: Progress) -> Executed:
    """Instructions of one call of the program's kernel."""
    listing = toolchain.disassemble(program)
    code = min(listing.instructions), max(listing.instructions) + 1
    traced = emulator.trace_program(
        program,
        [arguments],
        calls=CALLS,
        mark=listing.address_of(MARK),
        code=code,
        progress=lambda text: None,
    )
    steps = steps_of_case(traced.trace, 0, listing, lambda function: function not in ("main", MARK))
    counts = tally(flow_of(steps, traced.trace, listing), emulator.VLEN_BITS)
    return Executed(instructions=counts.instructions // CALLS, vector_instructions=counts.vector_instructions // CALLS)
