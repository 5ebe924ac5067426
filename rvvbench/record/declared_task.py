"""What a record of a task says of it, against the manifest and the pins that it keeps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from rvvbench.record.finding import Finding
from rvvbench.record.identity import canonical_json
from rvvbench.record.plain_manifest import Pair, at
from rvvbench.record.schema import Record

_LENGTHS = {"input_len": "max_prompt_tokens", "output_len": "max_new_tokens"}


def length(record: Record, field: str) -> str:
    """What the manifest calls `input_len` or `output_len`."""
    return _LENGTHS[field] if record.heading.workload == "eval" else field


def dataset_title(pins: Any) -> str:
    """The data that was used, in words, from its pins: for headings."""
    files = at(pins, "files")
    digests = dict.fromkeys(str(at(files, str(at(pins, split)))) for split in ("train", "test"))
    short = " and ".join(digest[:12] for digest in digests)
    if at(pins, "kind") == "hub":
        return f"{at(pins, 'repo')} at {str(at(pins, 'revision'))[:12]}, sha256 {short}"
    names = " and ".join(dict.fromkeys(str(at(pins, split)) for split in ("train", "test")))
    return f"local {names}, sha256 {short}"


def heading_of_task(record: Record) -> Iterator[Pair]:
    """What the heading says of the task, and where it comes from."""
    workload, heading = at(record.manifest, "experiment", "workload"), record.heading
    yield "heading.task", heading.task, "the workload's task", at(workload, "task")
    yield "heading.shots", heading.shots, "the workload's shots", at(workload, "shots")
    yield "heading.requests", heading.requests, "the workload's questions", at(workload, "questions")
    pins, declared = at(record.pins, "dataset"), at(record.manifest, "dataset")
    yield "heading.dataset", heading.dataset, "pins.dataset", dataset_title(pins)
    named = at(workload, "dataset")
    yield "manifest.experiment.workload.dataset", named, "manifest.dataset.name", at(declared, "name")
    if at(pins, "kind") == "hub":
        for field in ("repo", "revision"):
            yield f"pins.dataset.{field}", at(pins, field), "the data set's hub", at(declared, "hub", field)
        for split in ("train", "test"):
            yield f"pins.dataset.{split}", at(pins, split), "the data set's splits", at(declared, "splits", split)


def task_declared(record: Record, variants: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    """Every variant has one row of the task in each cache state, and all were asked the same questions."""
    workload, states = at(record.manifest, "experiment", "workload"), at(record.manifest, "experiment", "cache_states")
    wanted = [list(pair) for pair in product(variants, states if isinstance(states, list) else [])]
    found = [[row.variant, row.cache_state] for row in record.rows]
    if sorted(found) != sorted(wanted):
        yield Finding("declared", "rows", f"there are rows of {found}, the manifest has {wanted}")
    first = record.rows[0].expected.task
    for row in record.rows:
        task, load = row.expected.task, row.expected.load
        if task is None or load is None:
            yield Finding("declared", f"row {row.name}", "it has no task, and the manifest has one")
            continue
        said = [task.name, load.name, task.shots, len(task.questions), load.mode, load.concurrency]
        declared = [at(workload, name) for name in ("task", "task", "shots", "questions")]
        declared += ["closed", at(workload, "concurrency")]
        if canonical_json(said) != canonical_json(declared):
            yield Finding("declared", f"row {row.name}, expected.task", f"is {said}, the manifest says {declared}")
        if task != first:
            yield Finding("declared", f"row {row.name}, expected.task", "its questions are not those of the first row")
