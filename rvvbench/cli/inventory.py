"""`rvvbench list`: what can be run."""

from __future__ import annotations

import typer
from rich.table import Table

from rvvbench import project
from rvvbench.cli.console import out, print_json
from rvvbench.manifest.load import KINDS, load_document, names


def inventory(json_output: bool = typer.Option(False, "--json", help="Machine-readable output.")) -> None:
    """List experiments, models, stacks, boards and variants."""
    manifests = project.manifests_dir()
    found = {
        kind: [
            {"name": name, "title": str(load_document(manifests, kind, name).data.get("title", ""))}
            for name in names(manifests, kind)
        ]
        for kind in KINDS
    }
    if json_output:
        print_json(found)
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for kind, entries in found.items():
        table.add_row(f"[bold]{kind}[/]", "")
        for entry in entries:
            table.add_row(f"  {entry['name']}", f"[dim]{entry['title']}[/]")
    out.print(table)
    out.print("\nrvvbench show EXPERIMENT prints one in full; rvvbench run EXPERIMENT runs it.", style="dim")
