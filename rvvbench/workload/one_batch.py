"""One-batch: fresh processes of every variant in turn, each in its own container, and the record that they make."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench.engine.container import ContainerExit, ContainerSpec, Mount, run_container
from rvvbench.engine.service import Engine
from rvvbench.manifest.models import Variant
from rvvbench.manifest.resolve import Resolved
from rvvbench.observe.conditions import snapshot
from rvvbench.observe.machine import machine_facts
from rvvbench.progress import Progress
from rvvbench.provide.prompt import seeded_token_ids, special_ids
from rvvbench.record.build import Ran, build_record, build_row
from rvvbench.record.events import read_events
from rvvbench.record.schema import Heading, Record, Row
from rvvbench.record.schema import Target as RecordTarget
from rvvbench.record.store import RecordStore
from rvvbench.target.select import Target, environment
from rvvbench.workload.follow import following
from rvvbench.workload.provision import Provision
from rvvbench.workload.spec import EVENTS_NAME, Pins, Prompts, expected, one_batch_spec, variant_environment

RUNNER = Path(__file__).resolve().parent.parent / "runner"


@dataclass(frozen=True)
class Finished:
    """A record, and where it and the raw files of its processes are."""

    record: Record
    path: Path
    run_dir: Path


def prompts(resolved: Resolved) -> Prompts:
    """The seeded prompts: indices 0..batch-1 are measured, the next batch is the warm-up."""
    workload = resolved.experiment.workload
    vocabulary = int(resolved.model.config["vocab_size"])
    barred = special_ids(resolved.model.config)

    def batch(first: int) -> list[list[int]]:
        return [
            seeded_token_ids(workload.seed, first + index, workload.input_len, vocabulary, barred)
            for index in range(workload.batch_size)
        ]

    return Prompts(measured=batch(0), warmup=batch(workload.batch_size))


def run_one_batch(
    resolved: Resolved,
    target: Target,
    provision: Provision,
    engine: Engine,
    *,
    state_dir: Path,
    replay: str,
    progress: Progress,
    run_id: str,
) -> Finished:
    """Run every fresh process, derive, validate and store the record.

    Processes of the variants take turns (A B A B), so that a drift of the machine meets all of them. Events are on disk
    as they happen; an interrupted run leaves them in `runs/<run_id>/`, and no record.
    """
    started = datetime.datetime.now(datetime.UTC)
    experiment = resolved.experiment
    run_dir = state_dir / "runs" / run_id
    run_dir.mkdir(parents=True)
    wanted = prompts(resolved)
    pins = Pins(provision.checkpoint_files, provision.kernels_sha256)
    before = snapshot().plain()
    ran: dict[str, list[Ran]] = {variant.name: [] for variant in resolved.variants}
    notes = list(provision.notes)
    for index in range(experiment.fresh_processes):
        for variant in resolved.variants:
            progress.phase(f"{variant.name}: process {index + 1} of {experiment.fresh_processes}")
            row = f"{variant.name}/none"
            spec = one_batch_spec(resolved, target, variant, wanted, pins, run_id=run_id, row=row, process_index=index)
            folder = run_dir / variant.name / str(index)
            ended = _run_process(resolved, target, provision, engine, variant, spec, folder, progress)
            notes += [f"{row}, process {index}: {problem}" for problem in problems(ended, resolved)]
            ran[variant.name].append(Ran(read_events(folder / "out" / EVENTS_NAME), ended.exit_code))
    after = snapshot().plain()
    rows = [_row(resolved, target, variant, pins, ran[variant.name]) for variant in resolved.variants]
    record = build_record(
        run_id=run_id,
        created=started.isoformat(timespec="seconds"),
        experiment=experiment.name,
        title=experiment.title,
        heading=heading(resolved),
        target=RecordTarget(kind=target.kind, name=resolved.board.name),
        manifest=resolved.plain(),
        pins=provision.pins(),
        environment=environment(target, resolved.board),
        machine=machine_facts(),
        conditions_before=before,
        conditions_after=after,
        image=provision.image.of_record(),
        rows=rows,
        replay=replay,
        notes=notes,
    )
    path = RecordStore(state_dir / "results").write(record)
    return Finished(record, path, run_dir)


def heading(resolved: Resolved) -> Heading:
    """What every table of the record says above itself."""
    experiment = resolved.experiment
    return Heading(
        model=resolved.model.title,
        weights=experiment.weights,
        input_len=experiment.workload.input_len,
        output_len=experiment.workload.output_len,
        batch_size=experiment.workload.batch_size,
        dtype=experiment.dtype,
        tensor_parallel=experiment.tensor_parallel,
    )


def _row(resolved: Resolved, target: Target, variant: Variant, pins: Pins, ran: list[Ran]) -> Row:
    return build_row(
        variant=variant.name,
        cache_state="none",
        expected=expected(resolved, target, variant, pins),
        processes=ran,
    )


def _run_process(
    resolved: Resolved,
    target: Target,
    provision: Provision,
    engine: Engine,
    variant: Variant,
    spec: dict[str, Any],
    folder: Path,
    progress: Progress,
) -> ContainerExit:
    out = folder / "out"
    out.mkdir(parents=True)
    spec_dir = folder / "spec"
    spec_dir.mkdir()
    (spec_dir / "spec.json").write_text(json.dumps(spec, indent=1) + "\n", encoding="utf-8")
    with _runner_package(folder) as runner:
        container = ContainerSpec(
            image=provision.image.reference,
            command=("python3", "-m", "rvvbench_runner", "one-batch", "/rvvbench/spec/spec.json"),
            mounts=(
                Mount(runner, "/rvvbench/runner"),
                Mount(provision.sites[variant.name], "/rvvbench/site"),
                Mount(provision.checkpoint, "/rvvbench/model"),
                Mount(spec_dir, "/rvvbench/spec"),
                Mount(out, "/rvvbench/out", writable=True),
            ),
            env=variant_environment(resolved, target, variant),
            network="none",
            memory_bytes=resolved.board.memory_limit_bytes,
            cpuset=resolved.board.cpus,
            log_path=folder / "log.txt",
            timeout_s=resolved.experiment.timeouts_s.process,
            run_id=str(spec["run_id"]),
            shm_bytes=1 << 30,
        )
        with following(out / EVENTS_NAME, resolved.experiment.workload.output_len, progress):
            return run_container(engine, container)


def problems(ended: ContainerExit, resolved: Resolved) -> Iterator[str]:
    """What a reader of the record must know of how a container ran, beyond its events."""
    if ended.memory is not None and ended.memory.limit_bytes is None:
        yield f"the memory limit of {resolved.board.memory_limit_bytes} bytes was not in force: {ended.memory.reason}"
    if ended.timed_out:
        yield f"killed after {resolved.experiment.timeouts_s.process:.0f} s (timeouts_s.process)"
    if ended.oom_killed:
        yield "killed for want of memory"


@contextmanager
def _runner_package(folder: Path) -> Iterator[Path]:
    """The runner as a package of the name that it has inside, without byte-code of this machine's Python."""
    package = folder / "runner"
    shutil.copytree(RUNNER, package / "rvvbench_runner", ignore=shutil.ignore_patterns("__pycache__"))
    try:
        yield package
    finally:
        shutil.rmtree(package, ignore_errors=True)
