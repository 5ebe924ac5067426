"""`rvvbench list`: what can be run, and what was."""

from __future__ import annotations

import typer
from rich.table import Table

from rvvbench import project
from rvvbench.cli.console import out, print_json
from rvvbench.manifest.load import KINDS, load_document, names


def inventory(json_output: bool = typer.Option(False, "--json", help="Machine-readable output.")) -> None:
    """List experiments, models, stacks, boards and variants, and the records on this machine."""
    manifests = project.manifests_dir()
    found = {
        kind: [
            {"name": name, "title": str(load_document(manifests, kind, name).data.get("title", ""))}
            for name in names(manifests, kind)
        ]
        for kind in KINDS
    }
    found["records"] = _records()
    if json_output:
        print_json(found)
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for kind, entries in found.items():
        table.add_row(f"[bold]{kind}[/]", "")
        for entry in entries:
            table.add_row(f"  {entry['name']}", f"[dim]{entry['title']}[/]")
    out.print(table)
    folder = project.state_dir() / "results"
    out.print(f"\nrecords are in {folder}; rvvbench verify RUN_ID checks one", style="dim", soft_wrap=True)
    out.print("rvvbench show EXPERIMENT prints one in full; rvvbench run EXPERIMENT runs it.", style="dim")


def _records() -> list[dict[str, str]]:
    """The records on this machine, oldest first: run id, and in a few words what it is."""
    from rvvbench.record.store import RecordStore

    records = []
    for entry in RecordStore(project.state_dir() / "results").list():
        record = entry.record
        if record is None:
            title = f"unreadable: {entry.problem}"
        else:
            valid = sum(row.validity.valid for row in record.rows)
            title = f"{record.heading.model}, {record.target.kind}, {valid} of {len(record.rows)} rows valid"
        records.append({"name": entry.path.stem, "title": title})
    return records
