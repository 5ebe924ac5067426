"""`rvvbench kernels`: are the kernels right, what would they cost on an X60, how fast are they here."""

from __future__ import annotations

from pathlib import Path

import typer

from rvvbench import project
from rvvbench.cli.console import out, print_json, progress

app = typer.Typer(help="Test, model and time the kernels by themselves, without torch.", no_args_is_help=True)

STACK = typer.Option("debian-rvv", "--stack", help="The stack whose images compile the kernels.")
JSON = typer.Option(False, "--json", help="Machine-readable output.")


@app.command("model", epilog="Example: rvvbench kernels model --model llama-3.2-1b --rows 1 --rows 4")
def model(
    models: list[str] = typer.Option([], "--model", help="A model whose shapes to take (repeatable; default three)."),
    operations: list[str] = typer.Option([], "--operation", help="Only this operation, e.g. packed_linear."),
    types: list[str] = typer.Option([], "--type", help="Only this type, e.g. bf16."),
    rows: list[int] = typer.Option([], "--rows", help="Only linears of this many rows M (repeatable)."),
    save: Path | None = typer.Option(None, "--save", help="Folder to write kernel-model.json, .md and .svg to."),
    stack: str = STACK,
    json_output: bool = JSON,
) -> None:
    """Model what the kernels cost on a SpacemiT X60: executed blocks counted under QEMU, priced by llvm-mca.

    Deterministic: equal sources and images give equal digits. No board is needed, and none is measured.
    """
    from rvvbench.engine.service import Engine
    from rvvbench.errors import UsageError
    from rvvbench.kernel_model import emulator
    from rvvbench.kernel_model.cases import MODELS, cases_of
    from rvvbench.kernel_model.model import listed_kernels
    from rvvbench.kernel_model.model import model as run_model
    from rvvbench.kernel_model.plot import svg
    from rvvbench.kernel_model.prepare import build_for, model_configs
    from rvvbench.kernel_model.price import CPU
    from rvvbench.kernel_model.report import Report, Tools
    from rvvbench.kernel_model.table import markdown
    from rvvbench.kernel_model.toolchain import Toolchain
    from rvvbench.provide.file_hash import sha256_of
    from rvvbench.provide.kernels import build_kernel_program

    emulator.qemu()
    configs = model_configs(tuple(models) or MODELS)
    state_dir = project.state_dir()
    with progress() as shown, Engine(state_dir) as engine:
        engine.sweep()
        shown.phase("compiling the kernels")
        build = build_for("riscv64", stack, engine, state_dir)
        driver = build_kernel_program("model", build, shown.line)
        listed = listed_kernels(driver)
        available = [(k.operation, k.type) for k in listed if k.available]
        cases = [
            case
            for case in cases_of(configs, available)
            if (not operations or case.operation in operations)
            and (not types or case.type in types)
            and (not rows or dict(case.fixed).get("m", rows[0]) in rows)
        ]
        if not cases:
            raise UsageError(
                "no case is left to model",
                where="--operation, --type, --rows",
                mend=f"one of {', '.join(sorted({f'{operation} {kind}' for operation, kind in available}))}",
            )
        toolchain = Toolchain(engine, build.toolchain_image.image_id)
        modelled = run_model(driver, cases, toolchain, shown)
        reached = {row.modelled.kernel for row in modelled if row.modelled}
        report = Report(
            tools=Tools(
                llvm=toolchain.version(),
                qemu=emulator.version(),
                cpu=emulator.CPU,
                priced_as=CPU,
                toolchain_digest=build.toolchain_image.digest,
                program_sha256=sha256_of(driver),
            ),
            kernels_modelled=[kernel.name for kernel in listed if kernel.name in reached],
            kernels_not_reached=[kernel.name for kernel in listed if kernel.name not in reached],
            rows=modelled,
        )
    text = report.model_dump_json(by_alias=True, indent=1) + "\n"
    if save is not None:
        with project.writing(save):
            save.mkdir(parents=True, exist_ok=True)
            (save / "kernel-model.json").write_text(text)
            (save / "kernel-model.md").write_text(markdown(report))
            (save / "kernel-model.svg").write_text(svg(report))
    if json_output:
        print_json(report.model_dump(mode="json", by_alias=True))
        return
    out.print(markdown(report), markup=False, soft_wrap=True)
