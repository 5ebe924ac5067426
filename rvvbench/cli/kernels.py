"""`rvvbench kernels`: are the kernels right, what would they cost on an X60, how fast are they here."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer

from rvvbench import project
from rvvbench.cli.console import out, print_json, progress

if TYPE_CHECKING:
    from rvvbench.kernel_model.cases import Case
    from rvvbench.kernel_model.model import Listed

app = typer.Typer(
    help="Test, model, count and time the kernels by themselves; with torch only model --library and step.",
    no_args_is_help=True,
)

STACK = typer.Option("debian-rvv", "--stack", help="The stack whose images compile the kernels.")
JSON = typer.Option(False, "--json", help="Machine-readable output.")


@app.command("test", epilog="Example: rvvbench kernels test --compiler clang")
def test(
    compilers: list[str] = typer.Option([], "--compiler", help="clang or gcc (repeatable; default both)."),
    jobs: int = typer.Option(0, "--jobs", min=0, help="Runs at a time; 0: as many as there are processors."),
    stack: str = STACK,
    json_output: bool = JSON,
) -> None:
    """Hold every kernel against its float64 reference on every emulated machine, and on this one.

    VLEN 128 to 1024, with and without zvfh, agnostic elements filled with ones. Results that must not depend on the
    machine are compared bit by bit. Exit code 1 where anything is wrong or a kernel went untested.
    """
    import os
    import platform
    from dataclasses import asdict

    from rvvbench.engine.service import Engine
    from rvvbench.errors import CheckFailed, UsageError
    from rvvbench.kernel_model.correctness import Run, disagreements, listed_names, machines, run_all, untested
    from rvvbench.kernel_model.emulator import qemu
    from rvvbench.kernel_model.execute import execute
    from rvvbench.kernel_model.prepare import build_for
    from rvvbench.provide.kernels import Compiler, build_kernel_program
    from rvvbench.target.select import host_arch

    known: tuple[Compiler, ...] = ("clang", "gcc")
    chosen = [compiler for compiler in known if not compilers or compiler in compilers]
    if unknown := set(compilers) - set(known):
        raise UsageError(f"no compiler {', '.join(sorted(unknown))}", where="--compiler", mend="clang or gcc")
    qemu()
    here = host_arch(platform.machine())
    state_dir = project.state_dir()
    runs = []
    with TemporaryDirectory(prefix="rvvbench-") as folder, progress() as shown, Engine(state_dir) as engine:
        engine.sweep()
        for compiler in chosen:
            programs = {}
            for arch in ("riscv64", here):
                shown.phase(f"compiling the tests for {arch} with {compiler}")
                build = build_for(arch, stack, engine, state_dir)
                programs[arch] = build_kernel_program("tests", build, shown.line, compiler, Path(folder))
            for machine in machines(here):
                runs.append(Run(compiler, machine, programs["riscv64" if machine.cpu else here]))
        shown.phase(f"testing on {len(runs)} machines")
        verdicts = run_all(runs, execute, jobs=jobs or os.cpu_count() or 1, told=shown.line)
        # What a program lists is what was compiled into it, on whatever machine it runs.
        programs_once = {run.program: run for run in runs}.values()
        registry = sorted({name for run in programs_once for name in listed_names(execute(run, ("--list",)).output)})
    problems = [f"{v.machine}, {v.compiler}: {v.problem}" for v in verdicts if v.problem]
    problems += [f"results differ where they must not: {text}" for text in disagreements(verdicts)]
    problems += [f"tested nowhere: {name}" for name in untested(verdicts, registry)]
    if json_output:
        print_json({"runs": [asdict(v) for v in verdicts], "kernels": registry, "problems": problems})
    else:
        for verdict in verdicts:
            kernels = sum(count > 0 for count in verdict.kernels.values())
            out.print(
                f"{'FAIL' if verdict.problem else 'ok':5}{verdict.compiler:6}{verdict.machine:40}"
                f"{kernels:3} kernels {verdict.cases:6} cases {verdict.seconds:6.0f} s",
                markup=False,
                soft_wrap=True,
            )
    if problems:
        raise CheckFailed(
            "; ".join(problems), where="rvvbench kernels test", mend="mend the kernel, then run the command again"
        )


@app.command("bench", epilog="Example: rvvbench kernels bench --model llama-3.2-1b --rows 1 --operation packed_linear")
def bench(
    models: list[str] = typer.Option(["llama-3.2-1b"], "--model", help="A model whose shapes to take (repeatable)."),
    operations: list[str] = typer.Option([], "--operation", help="Only this operation, e.g. packed_linear."),
    types: list[str] = typer.Option(["bf16", "int8"], "--type", help="bf16, fp16, fp32 or int8 (repeatable)."),
    rows: list[int] = typer.Option(
        [1, 4, 64], "--rows", help="Rows M of the linears (repeatable): 1, 2, 4, 6, 8, 16, 64. Others keep theirs."
    ),
    repeats: int = typer.Option(5, "--repeats", min=1, help="Timings of each case."),
    min_s: float = typer.Option(0.05, "--min-seconds", min=0.0, help="Seconds that one timing takes at least."),
    driver: Path | None = typer.Option(
        None,
        "--driver",
        help="A bench_driver built elsewhere (kernels/build.sh bench).",
        exists=True,
        dir_okay=False,
        resolve_path=True,
    ),
    stack: str = STACK,
    json_output: bool = JSON,
) -> None:
    """Time the kernels on this machine, one thread, with hardware counters where the kernel gives any.

    On riscv64 with V these are the RVV kernels, elsewhere the portable ones, which say nothing of a board. Nothing runs
    under an emulator here. lm_head is left out: its weight has hundreds of megabytes.
    """
    import platform

    from rvvbench.engine.service import Engine
    from rvvbench.kernel_model.elf import check_program
    from rvvbench.kernel_model.model import listed_kernels
    from rvvbench.kernel_model.prepare import build_for, model_configs, native_driver
    from rvvbench.kernel_model.timing import time_cases
    from rvvbench.provide.kernels import build_kernel_program
    from rvvbench.target.select import host_arch

    _check_names(operations, types, rows)
    if driver is not None:
        check_program(driver, platform.machine(), "--driver")
    configs = model_configs(tuple(models))
    state_dir = project.state_dir()
    here = host_arch(platform.machine())
    with TemporaryDirectory(prefix="rvvbench-") as folder, progress() as shown:
        if driver is None and here == "riscv64":
            shown.phase("compiling the kernels with this machine's compiler")
            driver = native_driver(state_dir)
        elif driver is None:
            with Engine(state_dir) as engine:
                engine.sweep()
                shown.phase("compiling the kernels")
                driver = build_kernel_program(
                    "bench", build_for(here, stack, engine, state_dir), shown.line, into=Path(folder)
                )
        listed = listed_kernels(driver, emulated=False)
        cases = [case for case in _cases(configs, listed, operations, types, rows) if case.layer != "lm_head"]
        shown.phase(f"timing {len(cases)} cases")
        timed = time_cases(driver, cases, repeats=repeats, min_s=min_s)
    if json_output:
        print_json(
            {"schema": "rvvbench/kernel-bench/1", "machine": platform.machine(), "cases": [t.as_data() for t in timed]}
        )
        return
    for one in timed:
        work, unit = (one.case.elements, "elements") if one.case.elements else (one.case.macs, "MACs")
        counted = one.counters["cycles"].per_call
        cycles = f"{work / counted:.2f} {unit}/cycle" if counted else "cycles not counted"
        out.print(
            f"{one.case.model} {one.case.layer} {one.case.whole}\n    {one.kernel}: {1e6 * one.median_s:.1f} us, "
            f"{work / one.median_s / 1e9:.2f} G {unit}/s, {one.case.moved_bytes / one.median_s / 1e9:.2f} GB/s, "
            f"{cycles}",
            markup=False,
            soft_wrap=True,
        )
    reasons = {name: count.reason for one in timed for name, count in one.counters.items() if count.reason}
    for name, reason in reasons.items():
        out.print(f"{name}: not counted: {reason}", markup=False, soft_wrap=True)


def _cases(
    configs: dict[str, dict[str, object]],
    listed: list[Listed],
    operations: list[str],
    types: list[str],
    rows: list[int],
) -> list[Case]:
    """The cases that the options leave; raises UsageError where they leave none."""
    from rvvbench.errors import UsageError
    from rvvbench.kernel_model.model_cases import cases_of

    every = cases_of(configs, [(kernel.operation, kernel.type) for kernel in listed if kernel.available])
    cases = [
        case
        for case in every
        if (not operations or case.operation in operations)
        and (not types or case.type in types)
        and (not rows or dict(case.fixed).get("m", rows[0]) in rows)
    ]
    if not cases:
        raise UsageError(
            "the options leave no case",
            where="--operation, --type, --rows",
            mend=f"take of {', '.join(sorted({f'{case.operation} {case.type}' for case in every}))}",
        )
    return cases


def _check_names(operations: list[str], types: list[str], rows: list[int]) -> None:
    """Raises UsageError for an operation, a type or a number of rows of which there is no case, before any work."""
    from rvvbench.errors import UsageError
    from rvvbench.kernel_model.linear_cases import ROWS
    from rvvbench.kernel_model.model_cases import OPERATIONS, TYPES

    asked: tuple[tuple[str, list[Any], tuple[Any, ...]], ...] = (
        ("--operation", operations, OPERATIONS),
        ("--type", types, TYPES),
        ("--rows", rows, ROWS),
    )
    for option, given, known in asked:
        if unknown := [str(one) for one in given if one not in known]:
            raise UsageError(
                f"nothing is modelled of {', '.join(unknown)}",
                where=option,
                mend=f"take of {', '.join(map(str, known))}",
            )


def _check_folder(save: Path) -> None:
    """Raises UsageError where results cannot be saved there, before they are made."""
    from rvvbench.errors import UsageError

    try:
        save.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".rvvbench-", dir=save):
            pass
    except OSError as error:
        raise UsageError(
            f"nothing can be saved in {save}: {error.strerror}",
            where="--save",
            mend="name a folder to write to",
        ) from error


@app.command("model", epilog="Example: rvvbench kernels model --model llama-3.2-1b --rows 1 --rows 4")
def model(
    models: list[str] = typer.Option([], "--model", help="A model whose shapes to take (repeatable; default three)."),
    operations: list[str] = typer.Option([], "--operation", help="Only this operation, e.g. packed_linear."),
    types: list[str] = typer.Option([], "--type", help="Only this type, e.g. bf16."),
    rows: list[int] = typer.Option(
        [], "--rows", help="Of the linears only M of 1, 2, 4, 6, 8, 16, 64 (repeatable). Other operations keep theirs."
    ),
    library: Path | None = typer.Option(
        None,
        "--library",
        help="Another riscv64 library of torch.ops.sgl_kernel, beside ours: both are called by torch then.",
        exists=True,
        dir_okay=False,
        resolve_path=True,
    ),
    save: Path | None = typer.Option(
        None, "--save", help="Folder to write kernel-model.json, .md and .svg to (kernel-library-model.json and .md)."
    ),
    stack: str = STACK,
    json_output: bool = JSON,
) -> None:
    """Model what the kernels cost on a SpacemiT X60: executed blocks counted under QEMU, priced by llvm-mca.

    Deterministic: equal sources and images give equal digits. No board is needed, and none is measured.
    """
    from rvvbench.engine.service import Engine
    from rvvbench.kernel_model import emulator
    from rvvbench.kernel_model.cases import MODELS
    from rvvbench.kernel_model.elf import check_library
    from rvvbench.kernel_model.files import files_of, table_of
    from rvvbench.kernel_model.library import Caller
    from rvvbench.kernel_model.model import listed_kernels
    from rvvbench.kernel_model.model import model as run_model
    from rvvbench.kernel_model.prepare import build_for, model_configs
    from rvvbench.kernel_model.price import CPU
    from rvvbench.kernel_model.report import Comparison, LibraryRows, Report, Tools
    from rvvbench.kernel_model.step import steps_of_rows
    from rvvbench.kernel_model.toolchain import Toolchain
    from rvvbench.provide.file_hash import sha256_of
    from rvvbench.provide.kernels import build_kernel_program, library_of

    _check_names(operations, types, rows)
    if library is not None:
        check_library(library, "--library")
    if save is not None:
        _check_folder(save)
    emulator.qemu()
    configs = model_configs(tuple(models) or MODELS)
    state_dir = project.state_dir()
    with TemporaryDirectory(prefix="rvvbench-") as folder, progress() as shown, Engine(state_dir) as engine:
        engine.sweep()
        shown.phase("compiling the kernels")
        build = build_for("riscv64", stack, engine, state_dir)
        driver = build_kernel_program("model", build, shown.line, into=Path(folder))
        listed = listed_kernels(driver)
        cases = _cases(configs, listed, operations, types, rows)
        toolchain = Toolchain(engine, build.toolchain_image.image_id)
        ours = library_of(build, shown.line) if library else driver
        tools = Tools(
            llvm=toolchain.version(),
            qemu=emulator.version(),
            cpu=emulator.CPU,
            priced_as=CPU,
            toolchain_digest=build.toolchain_image.digest,
            program_sha256=sha256_of(ours),
        )
        document: Report | Comparison
        if library:
            caller = Caller(engine, build.runtime_image.image_id)
            found = [
                LibraryRows(name=one.name, sha256=sha256_of(one), rows=caller.model(one, cases, toolchain, shown))
                for one in (library, ours)
            ]
            document = Comparison(tools=tools, ours=found[1], other=found[0])
        else:
            modelled = run_model(driver, cases, toolchain, shown)
            reached = {row.modelled.kernel for row in modelled if row.modelled}
            document = Report(
                tools=tools,
                kernels_modelled=[kernel.name for kernel in listed if kernel.name in reached],
                kernels_not_reached=[kernel.name for kernel in listed if kernel.name not in reached],
                rows=modelled,
                steps=steps_of_rows(configs, modelled),
            )
    if save is not None:
        with project.writing(save):
            for name, text in files_of(document).items():
                (save / name).write_text(text)
    if json_output:
        print_json(document.model_dump(mode="json", by_alias=True))
        return
    out.print(table_of(document), markup=False, soft_wrap=True)


@app.command("step", epilog="Example: rvvbench kernels step --model llama-mini --save results/kernels")
def step(
    models: list[str] = typer.Option(["llama-mini"], "--model", help="A model to count a step of (repeatable)."),
    context: int = typer.Option(72, "--context", min=2, help="Tokens of the sequence, the new one with them."),
    layers: int = typer.Option(0, "--layers", min=0, help="Only so many of the model's layers; 0: all of them."),
    save: Path | None = typer.Option(None, "--save", help="Folder to write kernel-step.json and .md to."),
    stack: str = STACK,
    json_output: bool = JSON,
) -> None:
    """Count the instructions of one decode step under QEMU: SGLang's plain torch against our kernels.

    Exact counts of every operator of the step, Python left out; not time. The ways must agree in their logits.
    Deterministic: equal sources and images give equal digits.
    """
    from rvvbench.engine.service import Engine
    from rvvbench.errors import UsageError
    from rvvbench.kernel_model import emulator, step_caller
    from rvvbench.kernel_model.files import step_files_of
    from rvvbench.kernel_model.prepare import build_for, model_configs
    from rvvbench.kernel_model.step_report import StepReport, StepTools
    from rvvbench.kernel_model.step_table import markdown
    from rvvbench.kernel_model.torch_process import TorchProcess
    from rvvbench.provide.file_hash import sha256_of
    from rvvbench.provide.kernels import library_of

    if save is not None:
        _check_folder(save)
    emulator.qemu()
    specs = [
        step_caller.Spec(name, config, context, layers or None)
        for name, config in model_configs(tuple(dict.fromkeys(models))).items()
    ]
    for spec in specs:
        longest = int(spec.config["max_position_embeddings"])
        if context > longest:
            raise UsageError(f"{spec.model} has {longest} positions", where="--context", mend=f"at most {longest}")
    state_dir = project.state_dir()
    with progress() as shown, Engine(state_dir) as engine:
        engine.sweep()
        build = build_for("riscv64", stack, engine, state_dir)
        library = library_of(build, shown.line)
        process = TorchProcess(engine, build.runtime_image.image_id, step_caller.PROGRAM, library)
        steps, libraries = step_caller.count_steps(process, specs, shown)
        report = StepReport(
            tools=StepTools(
                qemu=emulator.version(),
                cpu=emulator.CPU,
                runtime_digest=build.runtime_image.digest,
                library_sha256=sha256_of(library),
            ),
            libraries=libraries,
            steps_counted=step_caller.STEPS,
            steps=steps,
        )
    if save is not None:
        with project.writing(save):
            for name, text in step_files_of(report).items():
                (save / name).write_text(text)
    if json_output:
        print_json(report.model_dump(mode="json", by_alias=True))
        return
    out.print(markdown(report), markup=False, soft_wrap=True)


@app.command("vec", epilog="Example: rvvbench kernels vec --save results/kernels")
def vec(
    save: Path | None = typer.Option(None, "--save", help="Folder to write vecrvv.json and .md to."),
    stack: str = STACK,
    json_output: bool = JSON,
) -> None:
    """Count the instructions of what TorchInductor generates under QEMU: torch's scalar code against VecRVV's.

    The same graphs, generated by the same torch; exact counts of one call, not time. Deterministic.
    """
    import platform

    from rvvbench.engine.service import Engine
    from rvvbench.kernel_model import emulator
    from rvvbench.kernel_model.files import vectorised_files_of
    from rvvbench.kernel_model.prepare import build_for
    from rvvbench.kernel_model.vectorised_count import count_graphs
    from rvvbench.kernel_model.vectorised_table import markdown
    from rvvbench.target.select import host_arch

    if save is not None:
        _check_folder(save)
    emulator.qemu()
    state_dir = project.state_dir()
    with progress() as shown, Engine(state_dir) as engine:
        engine.sweep()
        here = build_for(host_arch(platform.machine()), stack, engine, state_dir)
        report = count_graphs(build_for("riscv64", stack, engine, state_dir), here.runtime_image, shown)
    if save is not None:
        with project.writing(save):
            for name, text in vectorised_files_of(report).items():
                (save / name).write_text(text)
    if json_output:
        print_json(report.model_dump(mode="json", by_alias=True))
        return
    out.print(markdown(report), markup=False, soft_wrap=True)
