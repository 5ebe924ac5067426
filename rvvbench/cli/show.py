"""`rvvbench show`: an experiment in full, with every pin, routing table and packed bytes; or the table of a record."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer
import yaml
from rich.markup import escape
from rich.table import Table

from rvvbench import project
from rvvbench.cli import packed_weights
from rvvbench.cli.console import out, print_json
from rvvbench.cli.execution import VARIANT, Output, print_record, variant_names
from rvvbench.errors import UsageError
from rvvbench.manifest.load import names
from rvvbench.manifest.loads import loads
from rvvbench.manifest.models import Eval, OneBatch, TargetKind, Variant
from rvvbench.manifest.operators import allowed_ops, expected_ops
from rvvbench.manifest.packing import packing
from rvvbench.manifest.resolve import Resolved, commit_of, resolve
from rvvbench.manifest.routing import Route, allowed_routes, predicted_routes
from rvvbench.manifest.shapes import packed_bytes, projection_shapes
from rvvbench.manifest.task_routing import at_any_rows
from rvvbench.record.way import way

if TYPE_CHECKING:
    from rvvbench.record.schema import Record

ROUTE_TITLES = ("projection", "M", "path", "calls", "reason")
COUNTED = (("M", "m"), ("calls", "calls"))
"""Titles and keys of what may be of any number."""


def show(
    name: str = typer.Argument(
        metavar="EXPERIMENT|RECORD", help="An experiment, or the run id or file of a record; see `rvvbench list`."
    ),
    target: str | None = typer.Option(
        None, "--target", help="Of an experiment: board (the default), emulated or host: whose overlay to apply."
    ),
    variant: list[str] = VARIANT,
    settings: list[str] = typer.Option(
        [], "--set", metavar="KEY=VALUE", help="Of an experiment: override a value of the manifest."
    ),
    markdown: bool = typer.Option(False, "--markdown", help="Of a record: print the table as Markdown."),
    definitions: bool = typer.Option(
        False, "--definitions", help="Of a record: also the figures as SGLang, vLLM, guidellm and MLPerf define them."
    ),
    json_output: bool = typer.Option(False, "--json", help="Machine-readable output."),
) -> None:
    """Print the fully resolved manifest of EXPERIMENT: pins, routes, packed weights; or the table of RECORD again.

    A record is named by its run id, the beginning of one, or a path (rvvbench show results/host/RUN_ID.json
    --markdown). An invalid row is shown and is no failure here.
    """
    experiments = names(project.manifests_dir(), "experiments")
    variants = variant_names(variant)
    if name in experiments:
        _refuse("an experiment", name, {"--markdown": markdown, "--definitions": definitions})
        resolved = resolve(
            project.manifests_dir(), name, _kind(target or "board"), settings=settings, variants=variants or None
        )
        if json_output:
            print_json(as_data(resolved))
        else:
            _print(resolved)
        return
    record = _record(name, experiments)
    _refuse("a record", name, {"--target": target is not None, "--variant": bool(variants), "--set": bool(settings)})
    print_record(record, Output(markdown=markdown, json=json_output, definitions=definitions))


def _record(name: str, experiments: list[str]) -> Record:
    """The record of that name. Raises UsageError where there is neither that nor an experiment."""
    from rvvbench.record.store import RecordStore

    store = RecordStore(project.state_dir() / "results")
    try:
        path = store.find(name)
    except UsageError as error:
        near = difflib.get_close_matches(name, experiments, n=1)
        raise UsageError(
            f"{name!r} is no experiment, and {error.cause}",
            where=f"{project.manifests_dir() / 'experiments'}, {store.folder}",
            mend=f"did you mean {near[0]!r}?" if near else "rvvbench list shows the experiments and the records",
        ) from error
    return store.load(path)


def _refuse(what: str, name: str, given: dict[str, bool]) -> None:
    """Raise UsageError for options that mean nothing for this."""
    wrong = [option for option, is_given in given.items() if is_given]
    if wrong:
        raise UsageError(
            f"{' and '.join(wrong)} mean{'s' if len(wrong) == 1 else ''} nothing for {what}",
            where=name,
            mend="rvvbench show --help says which options are for what",
        )


def _kind(target: str) -> TargetKind:
    if target not in ("board", "emulated", "host"):
        raise typer.BadParameter(f"{target!r} is none of board, emulated, host", param_hint="--target")
    return target  # type: ignore[return-value]


def as_data(resolved: Resolved) -> dict[str, Any]:
    """All that `show` knows, as JSON data."""
    config = resolved.model.config
    lock = resolved.lock.lock
    locked_model = lock.models.get(resolved.model.name)
    return {
        **resolved.plain(),
        "pins": {
            "images": {
                name: {arch: image.digest for arch, image in lock.images.get(name, {}).items()}
                for name in (resolved.stack.image, resolved.stack.toolchain)
            },
            "wheels": {
                name: wheel.sha256 for name, wheel in lock.wheels.items() if name.startswith(f"{resolved.stack.name}/")
            },
            "model": locked_model.model_dump(mode="json") if locked_model else None,
            **({"dataset": lock.datasets[resolved.dataset.name].model_dump(mode="json")} if resolved.dataset else {}),
        },
        "projections": [
            {
                "projection": shape.projection,
                "n": shape.n,
                "k": shape.k,
                "count": shape.count,
                "bias": shape.bias,
                "packed_bytes": shape.packed_bytes,
            }
            for shape in projection_shapes(config)
        ],
        "packed_bytes": packed_bytes(config),
        "packing": {
            variant.name: packed_weights.plain(packing(config, variant))
            for variant in resolved.variants
            if variant.projections
        },
        "routing": {variant.name: list(_routing(resolved, variant)) for variant in resolved.variants},
        "operators": {variant.name: _operators(resolved, variant) for variant in resolved.variants},
    }


def _operators(resolved: Resolved, variant: Variant) -> dict[str, int] | dict[str, None]:
    """Calls of each operator of our kernels in one measured pass; of a server the calls depend on its requests."""
    config, workload = resolved.model.config, resolved.experiment.workload
    if isinstance(workload, OneBatch):
        return expected_ops(config, variant, workload)
    return allowed_ops(config, variant, workload.as_serving() if isinstance(workload, Eval) else workload)


def _routing(resolved: Resolved, variant: Variant) -> Iterator[dict[str, Any]]:
    """One-batch: every route of the measured pass. Serving: for each load those that may be taken. A task: the paths,
    whatever the rows (M is null).
    """
    config, workload = resolved.model.config, resolved.experiment.workload
    tables: list[tuple[str, Sequence[Route]]]
    if isinstance(workload, OneBatch):
        tables = [("", predicted_routes(config, variant, workload))]
    elif isinstance(workload, Eval):
        routes = allowed_routes(config, variant, workload.as_serving(), workload.concurrency)
        tables = [(workload.task, at_any_rows(routes))]
    else:
        tables = [(one.name, allowed_routes(config, variant, workload, one.in_flight)) for one in loads(workload)]
    for name, table in tables:
        for r in table:
            m = None if isinstance(workload, Eval) else r.m
            line = {"projection": r.projection, "m": m, "path": r.path, "calls": r.calls, "reason": r.reason}
            line |= {} if r.bucket is None else {"bucket": r.bucket}
            yield {"load": name, **line} if name else line


def _print(resolved: Resolved) -> None:
    data = as_data(resolved)
    experiment, model = resolved.experiment, resolved.model
    out.rule(f"[bold]{experiment.name}[/] on target {resolved.target}", align="left")
    plain = {key: value for key, value in data["experiment"].items() if key != "schema"}
    out.print(
        escape(yaml.safe_dump(plain, sort_keys=False, default_flow_style=None, width=1000).rstrip()), soft_wrap=True
    )
    out.rule("pins", align="left")
    for name, value in _pins(resolved, data):
        out.print(f"[bold]{name:<16}[/] {escape(value)}", soft_wrap=True)
    out.rule(f"projections of {model.title}", align="left")
    shapes = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("projection", "N", "K", "count", "bias", "packed bytes (N padded to 32)"):
        shapes.add_column(title, justify="left" if title == "projection" else "right")
    for shape in data["projections"]:
        shapes.add_row(
            shape["projection"],
            f"{shape['n']:,}",
            f"{shape['k']:,}",
            str(shape["count"]),
            "yes" if shape["bias"] else "no",
            f"{shape['packed_bytes']:,}",
        )
    shapes.add_row("[bold]all[/]", "", "", "", "", f"[bold]{data['packed_bytes']:,}[/]")
    out.print(shapes)
    for one in resolved.variants:
        if one.projections or one.packed_weight_mode == "explicit":
            packed_weights.show(one.name, packing(model.config, one))
    for variant, routes in data["routing"].items():
        out.rule(f"routing of {variant}", align="left")
        table = Table(box=None, padding=(0, 2, 0, 0))
        titles = [*(["load"] if any("load" in route for route in routes) else []), *ROUTE_TITLES]
        for title in titles:
            table.add_column(title, justify="right" if title in ("M", "calls") else "left")
        for route in routes:
            cells = {
                **route,
                "path": way(route["path"], route.get("bucket")),
                "M": "any" if route["m"] is None else route["m"],
                "calls": "any" if route["calls"] is None else route["calls"],
            }
            table.add_row(*(str(cells[title]) for title in titles))
        out.print(table)
        ops = data["operators"][variant]
        listed = ", ".join(op if calls is None else f"{op} {calls}" for op, calls in ops.items())
        out.print(f"operators of our kernels: {listed or 'none'}", soft_wrap=True)


def _pins(resolved: Resolved, data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and value of every pin; the name only on the first line of several. Hashes are never cut."""
    model, dataset = resolved.model, resolved.dataset
    if dataset:
        yield "data set", f"{dataset.hub.repo} at {dataset.hub.revision}"
        for name, sha256 in resolved.lock.lock.datasets[dataset.name].files.items():
            yield "", f"{sha256 or 'hash not resolved yet'}  {name}"
    if model.hub:
        yield "checkpoint", f"{model.hub.repo} at {model.hub.revision}"
    if model.synthetic:
        yield "synthetic", f"{model.synthetic.algorithm}, seed {model.synthetic.seed}"
        for name, file in sorted(model.synthetic.files.items()):
            yield "", f"{file.sha256}  {name}  {file.size:,} bytes"
        if model.synthetic.w8a8:
            yield "w8a8", model.synthetic.w8a8.algorithm
            for name, file in sorted(model.synthetic.w8a8.files.items()):
                yield "", f"{file.sha256}  {name}  {file.size:,} bytes"
    for part in ("pytorch", "sglang"):
        source = data["stack"][part]
        if source["kind"] == "git":
            commit = commit_of(resolved.stack, resolved.stack_document, resolved.lock, part)
            yield part, f"{source['url']} {source['branch']} {commit or 'commit not resolved yet'}"
        elif source["kind"] == "wheel":
            yield part, f"{source['filename']} sha256 {source['sha256']}"
        else:
            yield part, f"{source['package']} {source['version']}"
    for name, digests in data["pins"]["images"].items():
        for arch, digest in digests.items():
            yield f"image {name}", f"{arch} {digest}"
        if not digests:
            yield f"image {name}", "not locked"
