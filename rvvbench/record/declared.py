"""What a record says twice: heading, target, image and expectations, against the manifest and the pins that it keeps.

Manifest and pins are read as plain JSON data (the keys of `rvvbench/experiment/1` and its kin): a record must be
checkable without the code that resolved its manifest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from rvvbench.record.declared_caches import (
    COMPILE_ARGS,
    COMPILE_VARIABLES,
    caches_come_from,
    compile_args,
    states_of,
)
from rvvbench.record.declared_loads import loads_declared, routing_of_load
from rvvbench.record.declared_routes import ops_declared, routes_declared
from rvvbench.record.declared_task import heading_of_task, length, task_declared
from rvvbench.record.finding import Finding
from rvvbench.record.identity import canonical_json
from rvvbench.record.operators import PACKED_LINEAR_OP
from rvvbench.record.plain_manifest import ABSENT, HEAD, Pair, at, packed_projections
from rvvbench.record.plain_model import (
    MIB,
    NotDeclaredError,
    compiles,
    describes_operators,
    packed_of,
    plain_model,
    uses_kernels,
)
from rvvbench.record.schema import Expected, Record, Row

_MACHINES = {"riscv64": "riscv64", "amd64": "x86_64", "arm64": "aarch64"}
"""`uname -m` by OCI's name of an architecture."""

_OF_THEHEADING = (
    *("model_path", "device", "dtype", "tp_size", "attention_backend"),
    *("kv_cache_dtype", "quantization", "cpu_rvv_memory_budget_mib"),
)


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
    yield from _of_all_states(record, variants)
    yield from caches_come_from(record)
    for row in record.rows:
        where = f"row {row.name}"
        declared_states = states_of(variants.get(row.variant, {}), states)
        if row.cache_state not in declared_states:
            yield Finding(
                "declared", where, f"the cache state is {row.cache_state}; the manifest has {declared_states}"
            )
        for field, stored, source, declared in _expected(record, row, variants.get(row.variant, {})):
            yield from _compared("expected", f"{where}, expected.{field}", stored, source, declared)
        yield from _proves_something(where, row.expected)
        yield from _computed(record, row, variants.get(row.variant, {}))


def _of_all_states(record: Record, variants: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    """Every variant with a row has one in each of its cache states."""
    states = at(record.manifest, "experiment", "cache_states")
    there = {(row.variant, row.cache_state) for row in record.rows}
    rows = {name for name, _ in there}
    for name, variant in variants.items():
        for state in states_of(variant, states):
            if name in rows and (name, state) not in there:
                yield Finding("declared", "rows", f"there is no row of {name}/{state}, which the manifest has")


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
        yield from _quantised(record)


def _quantised(record: Record) -> Iterator[Pair]:
    """The quantised form of a generated checkpoint, where the run had one and the manifest pins it."""
    pinned = at(record.manifest, "model", "synthetic", "w8a8")
    if not isinstance(pinned, dict) or "checkpoint_w8a8" not in record.pins:
        return
    files = pinned.get("files")
    sha256s = {name: at(file, "sha256") for name, file in files.items()} if isinstance(files, dict) else {}
    for field, declared in (("files", sha256s), ("algorithm", pinned.get("algorithm"))):
        stored = at(record.pins, "checkpoint_w8a8", field)
        yield f"pins.checkpoint_w8a8.{field}", stored, f"manifest.model.synthetic.w8a8.{field}", declared


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
    pin = "checkpoint_w8a8" if variant.get("linear") == "w8a8" else "checkpoint"
    yield "checkpoint_files", expected.checkpoint_files, f"pins.{pin}.files", at(record.pins, pin, "files")
    seen = {name: expected.environment.get(name, ABSENT) for name in record.environment}
    yield "environment", seen, "the record's environment", record.environment
    ours = uses_kernels(variant)
    library = at(record.pins, "kernels", "library_sha256") if ours else None
    yield "kernels_sha256", expected.kernels_sha256, "pins.kernels and the variant", library
    suffix = "_portable" if at(board, "vlen") is None else "_rvv"
    yield "kernel_suffix", expected.kernel_suffix, "board and variant", suffix if ours else None
    if expected.load is not None:
        layers = at(manifest, "model", "config", "num_hidden_layers")
        yield "load.layers", expected.load.layers, "the model's num_hidden_layers", layers
    yield "compiles", expected.compiles, "the variant's compile", compiles(variant)
    limits = None if expected.accuracy is None else expected.accuracy.model_dump()
    yield "accuracy", limits, "the variant's accuracy", variant.get("accuracy")
    given = expected.server_args
    yield "server_args.dtype", given.get("dtype", ABSENT), "the heading's dtype", record.heading.dtype
    yield "server_args.tp_size", given.get("tp_size", ABSENT), "the heading's TP", record.heading.tensor_parallel
    backend = given.get("attention_backend", ABSENT)
    yield "server_args.attention_backend", backend, "the variant's", variant.get("attention_backend", ABSENT)
    int8, w8a8 = variant.get("kv_cache_dtype") == "int8", variant.get("linear") == "w8a8"
    cache = given.get("kv_cache_dtype", ABSENT)
    yield "server_args.kv_cache_dtype", cache, "the variant's", "int8" if int8 else ABSENT
    quantised = given.get("quantization", ABSENT)
    yield "server_args.quantization", quantised, "the variant's linear", "w8a8_int8" if w8a8 else ABSENT
    asked = compile_args(variant)
    for name in COMPILE_ARGS:
        yield f"server_args.{name}", given.get(name, ABSENT), "the variant's compile", asked.get(name, ABSENT)
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


def _computed(record: Record, row: Row, variant: dict[str, Any]) -> Iterator[Finding]:
    """Routes, operators, budget and switches, by whichever manifests the record's is one of."""
    where, expected = f"row {row.name}, expected", row.expected
    if not describes_operators(variant):
        if expected.task is not None:
            yield Finding("expected", f"{where}.routing", "cannot be derived: the variant says nothing of operators")
            return
        routes = expected.routing
        calls = None if expected.load else sum(route.calls or 0 for route in routes if route.path == "packed")
        ops = {PACKED_LINEAR_OP: calls} if any(route.path == "packed" for route in routes) else {}
        yield from _compared("expected", f"{where}.ops", expected.ops, "the packed routes", ops)
        yield from (_routing if expected.load is None else routing_of_load)(record, row, variant)
        return
    try:
        model = plain_model(at(record.manifest, "model", "config"))
        budget = packed_of(model, variant).budget_bytes
        yield from routes_declared(f"{where}.routing", expected, model, variant)
        ops = ops_declared(expected, model, variant)
    except NotDeclaredError as error:
        yield Finding("expected", where, f"cannot be derived: {error}")
        return
    yield from _compared("expected", f"{where}.ops", expected.ops, "shape, model and variant", ops)
    if expected.load is not None:
        heads = list(model.qk_norm_heads)
        yield from _compared("expected", f"{where}.load.qk_norm_heads", expected.load.qk_norm_heads, "the model", heads)
    given = expected.server_args.get("cpu_rvv_memory_budget_mib", ABSENT)
    wanted = ABSENT if budget is None else budget / MIB
    field = f"{where}.server_args.cpu_rvv_memory_budget_mib"
    yield from _compared("expected", field, given, "the variant's packed_budget_percent", wanted)
    projections = variant.get("projections")
    switches = {
        "SGLANG_RVV_LINEAR": "torch" if variant.get("linear") == "torch" else "packed",
        "SGLANG_RVV_PROJECTIONS": ",".join(map(str, projections)) if isinstance(projections, list) else ABSENT,
        "SGLANG_RVV_ELEMENTWISE": variant.get("elementwise"),
    }
    switches |= dict.fromkeys(COMPILE_VARIABLES, ABSENT) | (COMPILE_VARIABLES if compiles(variant) else {})
    seen = {name: expected.environment.get(name, ABSENT) for name in switches}
    yield from _compared("expected", f"{where}.environment", seen, "the variant", switches)


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
