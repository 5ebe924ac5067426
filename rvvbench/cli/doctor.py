"""`rvvbench doctor`: what this machine can run, what is missing, and the command that mends it."""

from __future__ import annotations

import typer
from rich.markup import escape
from rich.table import Table

from rvvbench.cli.console import out, print_json
from rvvbench.errors import EnvironmentLacks

MARKS = {"ok": "[green]ok[/]", "warn": "[yellow]warn[/]", "missing": "[red]missing[/]", "not-needed": "[dim]-[/]"}


def doctor(json_output: bool = typer.Option(False, "--json", help="Machine-readable output.")) -> None:
    """Examine this machine; changes nothing. Exit code 3 when it can run no target at all."""
    from dataclasses import asdict

    from rvvbench.doctor.checks import run_checks
    from rvvbench.doctor.facts import gather_facts
    from rvvbench.doctor.verdict import verdicts

    checks = run_checks(gather_facts())
    targets = verdicts(checks)
    if json_output:
        print_json({"checks": [asdict(c) for c in checks], "targets": {name: asdict(v) for name, v in targets.items()}})
    else:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for check in checks:
            table.add_row(MARKS[check.status], escape(check.title), escape(check.found or ""))
            if check.mend and check.status in ("warn", "missing"):
                table.add_row("", "", f"[dim]{escape(check.why)}[/]\n[bold]{escape(check.mend)}[/]")
        out.print(table)
        out.print()
        for name, verdict in targets.items():
            mark = "[green]can run[/]" if verdict.can_run else "[red]cannot run[/]"
            out.print(f"{name:9} {mark}  {escape(verdict.reason or '')}", soft_wrap=True)
    if not any(verdict.can_run for verdict in targets.values()):
        raise EnvironmentLacks("this machine can run no target yet", mend="the commands above; `make demo` does it all")
