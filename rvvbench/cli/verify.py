"""`rvvbench verify`: derive every figure of a record again, without the board that made it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.markup import escape

from rvvbench import project
from rvvbench.cli.console import err, out, print_json
from rvvbench.errors import CheckFailed, RvvbenchError, UsageError

if TYPE_CHECKING:
    from rvvbench.record.schema import Record
    from rvvbench.record.store import RecordStore


def verify(
    records: list[str] = typer.Argument(help="Record files, folders of them, or run ids."),
    json_output: bool = typer.Option(False, "--json", help="Machine-readable output."),
) -> None:
    """Check records against themselves: all figures, validity, agreement and identity follow from the raw events.

    Exit code 1 when something does not follow.
    """
    from rvvbench.record.store import RecordStore
    from rvvbench.record.verify import verify as findings_of

    store = RecordStore(project.state_dir() / "results")
    reports: list[dict[str, Any]] = []
    for path in _paths(records, store):
        try:
            record = store.load(path)
        except RvvbenchError as error:
            reports.append(
                {"record": str(path), "findings": [{"id": "unreadable", "where": error.where, "text": error.cause}]}
            )
            continue
        found = [{"id": f.id, "where": f.where, "text": f.text} for f in findings_of(record)]
        found += [*_observations(record), *_caches(record)]
        reports.append(
            {
                "record": str(path),
                "valid_rows": sum(r.validity.valid for r in record.rows),
                "rows": len(record.rows),
                "findings": found,
            }
        )
    if json_output:
        print_json(reports)
    else:
        for report in reports:
            _print(report)
    bad = sum(1 for report in reports if report["findings"])
    if bad:
        raise CheckFailed(
            f"{bad} of {len(reports)} records do not hold", mend="get undamaged copies: records are never edited"
        )


def _observations(record: Record) -> Iterator[dict[str, str]]:
    """What observation says of the machine, derived again. Here, because records know nothing of observing."""
    from rvvbench.observe.rederive import disagreements

    for row in record.rows:
        load = row.expected.load.name if row.expected.load else None
        for process in row.processes:
            if process.observation is not None:
                found = disagreements(process.observation, events=process.events, load=load)
                said = {"target": record.target.kind, "governors": record.machine.get("governors")}
                for name, value in said.items():
                    if process.observation.get(name) != value:
                        found.append(f"{name} is {process.observation.get(name)}, the record says {value}")
                for text in found:
                    where = f"row {row.name}, process {process.index}, observation"
                    yield {"id": "observation", "where": where, "text": text}


def _caches(record: Record) -> Iterator[dict[str, str]]:
    """What is still here of the caches, against what the record says. Here, because records know no caches."""
    from rvvbench.cache.recheck import differences
    from rvvbench.cache.store import CacheStore

    store = CacheStore(project.state_dir() / "caches")
    for row in record.rows:
        for process in row.processes:
            if process.cache is None:
                continue
            own = f"{row.variant}/{row.cache_state}"
            for text in differences(process.cache, record.run_id, own, process.index, store):
                yield {"id": "cache", "where": f"row {row.name}, process {process.index}, cache", "text": text}


def _paths(refs: list[str], store: RecordStore) -> list[Path]:
    paths: list[Path] = []
    for ref in refs:
        if not ref.strip():
            raise UsageError("an empty name names no record", where="RECORDS", mend="rvvbench verify results/")
        folder = Path(ref)
        if not folder.is_dir():
            paths.append(store.find(ref))
            continue
        files = sorted(path for path in folder.rglob("*.json") if path.is_file())
        inside = [path for path in files if is_record(path.read_bytes())]
        passed_over = len(files) - len(inside)
        if not inside:
            others = f", only {passed_over} other JSON files" if passed_over else ""
            raise UsageError(f"there are no records in this folder{others}", where=ref, mend="name a folder of records")
        if passed_over:
            err.print(f"{ref}: passed over {passed_over} JSON files that are no records", soft_wrap=True, markup=False)
        paths += inside
    return paths


def is_record(data: bytes) -> bool:
    """Whether a JSON file says that it is a record. A damaged one that names the schema counts: it must be reported."""
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError):
        return b'"rvvbench/record/' in data
    schema = parsed.get("schema") if isinstance(parsed, dict) else None
    return isinstance(schema, str) and schema.startswith("rvvbench/record/")


def _print(report: dict[str, Any]) -> None:
    findings = report["findings"]
    if not findings:
        out.print(
            f"[green]holds[/]  {escape(str(report['record']))}  "
            f"({report['valid_rows']} of {report['rows']} rows valid)",
            soft_wrap=True,
        )
        return
    out.print(f"[red]does not hold[/]  {escape(str(report['record']))}", soft_wrap=True)
    for finding in findings:
        out.print(f"  {escape(str(finding['where']))}: {escape(finding['text'])}", soft_wrap=True)
