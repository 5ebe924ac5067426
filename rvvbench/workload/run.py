"""A run: fresh processes of every variant in turn, each in its own container, and the record that they make."""

from __future__ import annotations

import contextlib
import datetime
import itertools
from dataclasses import dataclass
from pathlib import Path

from rvvbench.cache.store import CacheStore
from rvvbench.engine.service import Engine
from rvvbench.errors import RvvbenchError
from rvvbench.manifest.models import CacheState, Eval, OneBatch, Variant
from rvvbench.manifest.resolve import Resolved
from rvvbench.observe.conditions import snapshot
from rvvbench.observe.machine import machine_facts
from rvvbench.progress import Progress
from rvvbench.provide.dataset import TaskData
from rvvbench.record.build import build_record
from rvvbench.record.events import read_events
from rvvbench.record.schema import Record
from rvvbench.record.schema import Target as RecordTarget
from rvvbench.record.store import RecordStore
from rvvbench.target.select import Target, environment
from rvvbench.workload.caches import RunCaches, key_of
from rvvbench.workload.evaluation import EvalJob
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


def job_of(resolved: Resolved, target: Target, pins: Pins, data: TaskData | None = None) -> Job:
    """The job that the experiment's workload is; a task needs its `data`."""
    workload = resolved.experiment.workload
    if isinstance(workload, OneBatch):
        return OneBatchJob(resolved, target, pins, workload)
    if isinstance(workload, Eval):
        assert data is not None
        return EvalJob(resolved, target, pins, workload, data)
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
    anything runs where a variant cannot fit into memory, UsageError where only a warm cache is asked for and none fits.
    """
    before = snapshot()
    check_memory(resolved, provision, before.memory_available_bytes)
    started = datetime.datetime.now(datetime.UTC)
    job = job_of(resolved, target, pins_of(provision), provision.data)
    machine = machine_facts()
    compiling = [variant for variant in resolved.variants if variant.compiles]
    keys = {v.name: key_of(resolved, target, provision, v, job.artifacts(v), machine["isa"]) for v in compiling}
    caches = RunCaches(CacheStore(state_dir / "caches"), run_id, keys, cold_command=f"{replay} --cache cold")
    caches.check({variant.name: resolved.cache_states(variant) for variant in compiling})
    run_dir = state_dir / "runs" / run_id
    run_dir.mkdir(parents=True)
    notes = list(provision.notes)
    with contextlib.closing(caches):
        place = Place(resolved, target, provision, engine, progress)
        measured = _measured(place, job, caches, run_dir, notes)
        after = snapshot()
        rows = [row for (variant, state), processes in measured for row in job.rows(variant, processes, state)]
        record = build_record(
            run_id=run_id,
            created=started.isoformat(timespec="seconds"),
            experiment=resolved.experiment.name,
            title=resolved.experiment.title,
            heading=job.heading(),
            target=RecordTarget(kind=target.kind, name=resolved.board.name),
            manifest=resolved.plain(),
            pins=provision.pins(),
            environment=environment(target, resolved.board),
            machine=machine,
            conditions_before=before.plain(),
            conditions_after=after.plain(),
            image=provision.image.of_record(),
            rows=rows,
            replay=replay,
            notes=notes,
        )
        path = RecordStore(state_dir / "results").write(record)
        for said in caches.keep(record.rows):
            progress.line(said)
    return Finished(record, path, run_dir)


def _measured(
    place: Place, job: Job, caches: RunCaches, run_dir: Path, notes: list[str]
) -> list[tuple[tuple[Variant, CacheState], list[Measured]]]:
    """What every fresh process left, by variant and cache state; `notes` grows by what a reader must know of it.

    A cold process comes before the warm ones that take what it made. Those that nothing is there for are not run: their
    row then lacks processes, and says so.
    """
    resolved, progress = place.resolved, place.progress
    observer = Observer.for_run(place.target.kind, interval_s=max(resolved.experiment.sample_interval_s, 1.0))
    states = [(variant, state) for variant in resolved.variants for state in resolved.cache_states(variant)]
    measured: list[tuple[tuple[Variant, CacheState], list[Measured]]] = [(one, []) for one in states]
    for index, ((variant, state), processes) in itertools.product(range(resolved.experiment.fresh_processes), measured):
        row = f"{variant.name}/{state}"
        which = f"process {index + 1} of {resolved.experiment.fresh_processes}"
        progress.phase(f"{row if variant.compiles else variant.name}: {which}")
        folder = run_dir.joinpath(variant.name, *([state] if variant.compiles else []), str(index))
        folder.mkdir(parents=True)
        try:
            only_warm = (variant, "cold") not in states
            prepared = caches.prepare(variant.name, state, folder, alone=only_warm)
        except RvvbenchError as error:
            notes.append(f"{row}, process {index}, was not run: {error.cause}")
            progress.line(notes[-1])
            continue
        spec = job.spec(variant, Identity(caches.run_id, row, index))
        watch = observer.watching(folder / "samples.jsonl", observer.before(progress))
        mounted = None if prepared is None else prepared.folder
        ended = run_process(place, variant, spec, folder, told=job.teller(), observe=watch, cache=mounted)
        notes += [f"{row}, process {index}: {problem}" for problem in problems(ended, resolved)]
        read, proof = read_events(folder / "out" / EVENTS_NAME), None
        if prepared is not None:
            proof = caches.ended(prepared, variant.name, row, index, well=ended.exit_code == 0)
        processes.append(Measured(read, ended.exit_code, watch, proof))
    return measured
