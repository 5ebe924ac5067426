"""Rows and records of whole models: what every variant that we ship expects of them, and events that show it."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from rvvbench import project
from rvvbench.manifest.resolve import Resolved, resolve
from rvvbench.record.build import build_record, build_row
from rvvbench.record.plain_model import plain_model
from rvvbench.record.schema import Expected, Image, Record, Row
from rvvbench.record.schema import Target as RecordTarget
from rvvbench.target.select import Target, environment
from rvvbench.workload.run import job_of
from rvvbench.workload.spec import Pins

from . import sample, serving_sample
from .sample import Event

EMULATED = Target("emulated", "riscv64", emulated=True)
KERNELS = "b" * 64


@functools.cache
def resolved(variant: str, model: str = "llama-mini", experiment: str = "llama-one-batch", *more: str) -> Resolved:
    """The experiment with these variants, emulated."""
    settings = [f"model={model}"] if experiment == "llama-one-batch" else []
    return resolve(project.manifests_dir(), experiment, "emulated", settings=settings, variants=[variant, *more])


def job(of: Resolved) -> Any:
    return job_of(of, EMULATED, Pins(_files(of), KERNELS, _w8a8_files(of)))


def expected(variant: str, model: str = "llama-mini") -> Expected:
    """What a one-batch row of the variant expects."""
    made = job(resolved(variant, model))
    found: Expected = made.expected(made.resolved.variants[0])
    return found


def row(variant: str, model: str = "llama-mini", events: Sequence[Event] | None = None, **of: Any) -> Row:
    """A one-batch row of the variant that did what it expects, or whose process left `events`."""
    expects = expected(variant, model)
    happened = sample.events(expects=expects, **of) if events is None else events
    return build_row(variant=variant, cache_state="none", expected=expects, processes=sample.ran(happened))


def record(*rows: Row, model: str = "llama-mini") -> Record:
    """The record of these one-batch rows."""
    names = list(dict.fromkeys(row.variant for row in rows))
    of = resolved(names[0], model, "llama-one-batch", *names[1:])
    image = Image(name="runtime", digest="sha256:" + "c" * 64, arch="riscv64")
    return build_record(
        run_id="r",
        created="2026-11-30T22:15:00Z",
        experiment=of.experiment.name,
        title=of.experiment.title,
        heading=job(of).heading(),
        target=RecordTarget(kind="emulated", name=of.board.name),
        manifest=of.plain(),
        pins={
            "image": image.model_dump(exclude={"relocked"}),
            "checkpoint": {"kind": "synthetic", "files": _files(of)},
            "checkpoint_w8a8": {"algorithm": "rvvbench-w8a8/1", "files": _w8a8_files(of)},
            "kernels": {"library_sha256": KERNELS},
        },
        environment=environment(EMULATED, of.board),
        machine={},
        conditions_before={},
        conditions_after={},
        image=image,
        rows=rows,
        replay="",
    )


def load_expected(variant: str, concurrency: int, model: str = "qwen3-mini") -> Expected:
    """What a serving row of the variant expects, by a server as the serving sample starts it."""
    of = resolve(project.manifests_dir(), "llama-serve", "emulated", settings=[f"model={model}"], variants=[variant])
    [full] = [row.expected for row in job(of).rows(of.variants[0], []) if row.concurrency == concurrency]
    cache = {"kv_cache_dtype": "int8"} if of.variants[0].kv_cache_dtype == "int8" else {}
    found = serving_sample.expected(
        concurrency,
        routing=full.routing,
        ops=full.ops,
        load=full.load,
        kernels_sha256=sample.KERNELS if full.kernels_sha256 else None,
    )
    return found.model_copy(update={"server_args": {**found.server_args, **cache}})


def load_events(variant: str, model: str = "qwen3-mini") -> list[Event]:
    """The events of such a server at concurrency 1 and 2."""
    of = resolved(variant, model)
    whole = (plain_model(of.model.config), of.variants[0].model_dump(mode="json", by_alias=True))
    events = serving_sample.events(packed=of.variants[0].uses_kernels, whole=whole)
    cache = {"kv_cache_dtype": "int8"} if of.variants[0].kv_cache_dtype == "int8" else {}
    for event in events:
        if event["event"] == "environment":
            event["server_args"] = {**event["server_args"], **cache}
    return events


def _w8a8_files(of: Resolved) -> dict[str, str] | None:
    quantised = of.model.synthetic.w8a8 if of.model.synthetic is not None else None
    return None if quantised is None else {name: file.sha256 for name, file in quantised.files.items()}


def _files(of: Resolved) -> dict[str, str]:
    assert of.model.synthetic is not None
    return {name: file.sha256 for name, file in of.model.synthetic.files.items()}
