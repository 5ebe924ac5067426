"""A run: fresh processes of every variant in turn, each in its own container, and the record that they make."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path

from rvvbench.engine.service import Engine
from rvvbench.manifest.models import OneBatch
from rvvbench.manifest.resolve import Resolved
from rvvbench.observe.conditions import snapshot
from rvvbench.observe.machine import machine_facts
from rvvbench.progress import Progress
from rvvbench.record.build import build_record
from rvvbench.record.events import read_events
from rvvbench.record.schema import Record
from rvvbench.record.schema import Target as RecordTarget
from rvvbench.record.store import RecordStore
from rvvbench.target.select import Target, environment
from rvvbench.workload.fit import check_memory
from rvvbench.workload.job import Job, Measured
from rvvbench.workload.observation import Observer
from rvvbench.workload.one_batch import OneBatchJob
from rvvbench.workload.process import Place, problems, run_process
from rvvbench.workload.provision import Provision
from rvvbench.workload.serving import ServingJob
from rvvbench.workload.spec import EVENTS_NAME, Identity, Pins


@dataclass(frozen=True)
class Finished:
    """A record, and where it and the raw files of its processes are."""

    record: Record
    path: Path
    run_dir: Path


def job_of(resolved: Resolved, target: Target, pins: Pins) -> Job:
    """The job that the experiment's workload is."""
    workload = resolved.experiment.workload
    if isinstance(workload, OneBatch):
        return OneBatchJob(resolved, target, pins, workload)
    return ServingJob(resolved, target, pins, workload)


def pins_of(provision: Provision) -> Pins:
    """The hashes of what was provided, for specs and rows."""
    w8a8 = provision.w8a8.sha256s if provision.w8a8 is not None else None
    return Pins(provision.checkpoint.sha256s, provision.kernels_sha256, w8a8)


def run(
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
    as they happen; an interrupted run leaves them in `runs/<run_id>/`, and no record. Raises EnvironmentLacks before
    anything runs where a variant cannot fit into memory.
    """
    before = snapshot()
    check_memory(resolved, provision, before.memory_available_bytes)
    started = datetime.datetime.now(datetime.UTC)
    experiment = resolved.experiment
    run_dir = state_dir / "runs" / run_id
    run_dir.mkdir(parents=True)
    job = job_of(resolved, target, pins_of(provision))
    place = Place(resolved, target, provision, engine, progress)
    observer = Observer.for_run(target.kind, interval_s=max(experiment.sample_interval_s, 1.0))
    measured: dict[str, list[Measured]] = {variant.name: [] for variant in resolved.variants}
    notes = list(provision.notes)
    for index in range(experiment.fresh_processes):
        for variant in resolved.variants:
            progress.phase(f"{variant.name}: process {index + 1} of {experiment.fresh_processes}")
            row = f"{variant.name}/none"
            spec = job.spec(variant, Identity(run_id, row, index))
            folder = run_dir / variant.name / str(index)
            folder.mkdir(parents=True)
            watch = observer.watching(folder / "samples.jsonl", observer.before(progress))
            ended = run_process(place, variant, spec, folder, told=job.teller(), observe=watch)
            notes += [f"{row}, process {index}: {problem}" for problem in problems(ended, resolved)]
            read = read_events(folder / "out" / EVENTS_NAME)
            measured[variant.name].append(Measured(read, ended.exit_code, watch))
    after = snapshot()
    rows = [row for variant in resolved.variants for row in job.rows(variant, measured[variant.name])]
    record = build_record(
        run_id=run_id,
        created=started.isoformat(timespec="seconds"),
        experiment=experiment.name,
        title=experiment.title,
        heading=job.heading(),
        target=RecordTarget(kind=target.kind, name=resolved.board.name),
        manifest=resolved.plain(),
        pins=provision.pins(),
        environment=environment(target, resolved.board),
        machine=machine_facts(),
        conditions_before=before.plain(),
        conditions_after=after.plain(),
        image=provision.image.of_record(),
        rows=rows,
        replay=replay,
        notes=notes,
    )
    path = RecordStore(state_dir / "results").write(record)
    return Finished(record, path, run_dir)
