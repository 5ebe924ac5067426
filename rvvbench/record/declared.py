"""What a record says twice: heading, target, image and expectations, against the manifest and the pins that it keeps.

Manifest and pins are read as plain JSON data (the keys of `rvvbench/experiment/1` and its kin): a record must be
checkable without the code that resolved its manifest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from rvvbench.record.declared_loads import loads_declared, routing_of_load
from rvvbench.record.declared_task import heading_of_task, length, routing_of_task, task_declared
from rvvbench.record.finding import Finding
from rvvbench.record.identity import canonical_json
from rvvbench.record.plain_manifest import ABSENT, HEAD, Pair, at, packed_projections
from rvvbench.record.schema import PACKED_LINEAR_OP, Expected, Record, Row

_MACHINES = {"riscv64": "riscv64", "amd64": "x86_64", "arm64": "aarch64"}
"""`uname -m` by OCI's name of an architecture."""

_OF_THEHEADING = ("model_path", "device", "dtype", "tp_size", "attention_backend")


def disagreements(record: Record) -> Iterator[Finding]:
    """Every place where the record says one thing and its manifest or pins another."""
    for where, stored, source, declared in (*_heading(record), *_target(record), *_provided(record)):
        yield from _compared("declared", where, stored, source, declared)
    variants = _variants(record)
    if Counter(row.variant for row in record.rows).keys() != variants.keys():
        rows = ", ".join(row.variant for row in record.rows)
        yield Finding("declared", "rows", f"rows of {rows}; the manifest has {', '.join(variants) or 'no variant'}")
    if record.heading.workload == "serving":
        yield from loads_declared(record, variants)
    if record.heading.workload == "eval":
        yield from task_declared(record, variants)
    states = at(record.manifest, "experiment", "cache_states")
    for row in record.rows:
        where = f"row {row.name}"
        if not isinstance(states, list) or row.cache_state not in states:
            yield Finding("declared", where, f"the cache state is {row.cache_state}; the manifest has {states}")
        for field, stored, source, declared in _expected(record, row, variants.get(row.variant, {})):
            yield from _compared("expected", f"{where}, expected.{field}", stored, source, declared)
        yield from _proves_something(where, row.expected)
        yield from _routing_of(row.expected)(record, row, variants.get(row.variant, {}))


def _routing_of(expected: Expected) -> Callable[[Record, Row, dict[str, Any]], Iterator[Finding]]:
    if expected.task is not None:
        return routing_of_task
    return _routing if expected.load is None else routing_of_load


def _heading(record: Record) -> Iterator[Pair]:
    heading = record.heading
    stored: dict[tuple[str, ...], tuple[str, Any]] = {
        ("experiment", "name"): ("experiment", record.experiment),
        ("experiment", "title"): ("title", record.title),
        ("model", "title"): ("heading.model", heading.model),
        ("experiment", "weights"): ("heading.weights", heading.weights),
        ("experiment", "dtype"): ("heading.dtype", heading.dtype),
        ("experiment", "tensor_parallel"): ("heading.tensor_parallel", heading.tensor_parallel),
        **{
            ("experiment", "workload", length(record, field)): (f"heading.{field}", getattr(heading, field))
            for field in ("input_len", "output_len")
        },
    }
    if heading.workload == "one-batch":
        stored["experiment", "workload", "batch_size"] = ("heading.batch_size", heading.batch_size)
    else:
        # Manifests of one batch may leave their kind out.
        stored["experiment", "workload", "kind"] = ("heading.workload", heading.workload)
    if heading.workload == "serving":
        stored["experiment", "workload", "requests"] = ("heading.requests", heading.requests)
    if heading.workload == "eval":
        yield from heading_of_task(record)
    for path, (where, value) in stored.items():
        yield where, value, f"manifest.{'.'.join(path)}", at(record.manifest, *path)


def _target(record: Record) -> Iterator[Pair]:
    yield "target.kind", record.target.kind, "manifest.target", at(record.manifest, "target")
    yield "target.name", record.target.name, "manifest.board.name", at(record.manifest, "board", "name")
    board = at(record.manifest, "experiment", "board")
    yield "manifest.experiment.board", board, "manifest.board.name", at(record.manifest, "board", "name")
    model = at(record.manifest, "experiment", "model")
    yield "manifest.experiment.model", model, "manifest.model.name", at(record.manifest, "model", "name")
    names = list(_variants(record))
    yield "manifest.variants", names, "manifest.experiment.variants", at(record.manifest, "experiment", "variants")


def _provided(record: Record) -> Iterator[Pair]:
    for field, stored in (("name", record.image.name), ("arch", record.image.arch), ("digest", record.image.digest)):
        yield f"image.{field}", stored, f"pins.image.{field}", at(record.pins, "image", field)
    yield "heading.weights", record.heading.weights, "pins.checkpoint.kind", at(record.pins, "checkpoint", "kind")
    if record.heading.weights == "synthetic":
        generated = at(record.manifest, "model", "synthetic", "files")
        files = {name: at(file, "sha256") for name, file in generated.items()} if isinstance(generated, dict) else {}
        yield "pins.checkpoint.files", _files(record), "manifest.model.synthetic.files", files


def _expected(record: Record, row: Row, variant: dict[str, Any]) -> Iterator[Pair]:
    expected, manifest = row.expected, record.manifest
    experiment, board = at(manifest, "experiment"), at(manifest, "board")
    yield "processes", expected.processes, "the experiment's fresh_processes", at(experiment, "fresh_processes")
    for field in ("input_len", "output_len"):
        name = length(record, field)
        yield field, getattr(expected, field), f"the workload's {name}", at(experiment, "workload", name)
    batch = at(experiment, "workload", "batch_size") if expected.load is None else 1
    yield "batch_size", expected.batch_size, "the workload's batch_size", batch
    yield "threads", expected.threads, "the board's threads", at(board, "threads")
    yield "vlen_bits", expected.vlen_bits, "the board's vlen", at(board, "vlen")
    yield "machine", expected.machine, "the image's arch", _MACHINES.get(record.image.arch, record.image.arch)
    yield "packages", expected.packages, "the stack's packages", at(manifest, "stack", "packages")
    yield "checkpoint_files", expected.checkpoint_files, "pins.checkpoint.files", _files(record)
    seen = {name: expected.environment.get(name, ABSENT) for name in record.environment}
    yield "environment", seen, "the record's environment", record.environment
    packed = variant.get("linear") == "packed"
    library = at(record.pins, "kernels", "library_sha256") if packed else None
    yield "kernels_sha256", expected.kernels_sha256, "pins.kernels and the variant's linear", library
    suffix = "_portable" if at(board, "vlen") is None else "_rvv"
    yield "kernel_suffix", expected.kernel_suffix, "board and variant", suffix if packed else None
    calls = sum(route.calls or 0 for route in expected.routing if route.path == "packed")
    if expected.load is None:
        yield "ops", expected.ops, "the packed routes", {PACKED_LINEAR_OP: calls} if calls else {}
    else:
        some = any(route.path == "packed" for route in expected.routing)
        yield "ops", expected.ops, "the packed routes", {PACKED_LINEAR_OP: None} if some else {}
        layers = at(manifest, "model", "config", "num_hidden_layers")
        yield "load.layers", expected.load.layers, "the model's num_hidden_layers", layers
    given = expected.server_args
    yield "server_args.dtype", given.get("dtype", ABSENT), "the heading's dtype", record.heading.dtype
    yield "server_args.tp_size", given.get("tp_size", ABSENT), "the heading's TP", record.heading.tensor_parallel
    backend = given.get("attention_backend", ABSENT)
    yield "server_args.attention_backend", backend, "the variant's", variant.get("attention_backend", ABSENT)
    server = at(experiment, "workload", "server") if expected.load else {}
    own = variant.get("server_args")
    for name, value in own.items() if isinstance(own, dict) else ():
        # What the heading says goes before what a variant says: such a row is invalid, not the record damaged.
        if name not in _OF_THEHEADING and not (isinstance(server, dict) and name in server):
            yield f"server_args.{name}", given.get(name, ABSENT), "the variant's", value
    if not isinstance(server, dict):
        yield "server_args", given, "the workload's server", server
        return
    for name, value in server.items():
        yield f"server_args.{name}", given.get(name, ABSENT), "the workload's server", value


def _proves_something(where: str, expected: Expected) -> Iterator[Finding]:
    for field in ("checkpoint_files", "routing"):
        if not getattr(expected, field):
            yield Finding("expected", f"{where}, expected.{field}", "is empty, so that nothing is proven by it")


def _routing(record: Record, row: Row, variant: dict[str, Any]) -> Iterator[Finding]:
    """Packed exactly where the variant says so, and for each pass as many calls as the model has layers.

    Prefill brings batch x input_len rows (to lm_head batch, the last of each prompt), a decode step batch rows.
    """
    where, expected = f"row {row.name}, expected.routing", row.expected
    packed = packed_projections(variant)
    layers = at(record.manifest, "model", "config", "num_hidden_layers")
    calls: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for route in expected.routing:
        calls[route.projection][route.m] += route.calls or 0
        path = "packed" if route.projection in packed else "torch"
        if route.path != path:
            text = f"{route.projection} at M={route.m} is {route.path}, by the variant it is {path}"
            yield Finding("expected", where, text)
    for projection in sorted(packed - calls.keys()):
        yield Finding("expected", where, f"{projection} is not there, the variant packs it")
    for projection, by_rows in calls.items():
        head = projection == HEAD
        count = 1 if head else layers if type(layers) is int else 0
        declared = Counter({expected.batch_size * (1 if head else expected.input_len): count})
        declared[expected.batch_size] += count * (expected.output_len - 1)
        if by_rows != declared:
            text = f"{projection} has calls {dict(by_rows)} by M, shape and model say {dict(+declared)}"
            yield Finding("expected", where, text)


def _compared(id_: str, where: str, stored: Any, source: str, declared: Any) -> Iterator[Finding]:
    # As JSON: Python takes true for 1.
    if canonical_json(stored) != canonical_json(declared):
        yield Finding(id_, where, f"is {stored}, but {source} says {declared}")


def _variants(record: Record) -> dict[str, dict[str, Any]]:
    """The manifest's variants by name, in its order."""
    listed = at(record.manifest, "variants")
    variants = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
    return {str(variant.get("name")): variant for variant in variants}


def _files(record: Record) -> Any:
    return at(record.pins, "checkpoint", "files")
