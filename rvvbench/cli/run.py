"""`rvvbench run`: the main job."""

from __future__ import annotations

import datetime
import shlex

import typer

from rvvbench import project
from rvvbench.cli.console import err, out, progress
from rvvbench.errors import CheckFailed, UsageError
from rvvbench.manifest.resolve import require_resolved, resolve


def run(
    experiment: str = typer.Argument(help="Name of an experiment; see `rvvbench list`."),
    target: str = typer.Option("auto", "--target", help="auto, board, emulated or host."),
    variant: list[str] = typer.Option(
        [], "--variant", metavar="NAME[,NAME]", help="Variants instead of the manifest's; can be given several times."
    ),
    repeat: int | None = typer.Option(None, "--repeat", min=1, help="Fresh processes per variant."),
    weights: str | None = typer.Option(None, "--weights", help="hub or synthetic."),
    settings: list[str] = typer.Option([], "--set", metavar="KEY=VALUE", help="Override a value of the manifest."),
    markdown: bool = typer.Option(False, "--markdown", help="Print the table as Markdown."),
    json_output: bool = typer.Option(False, "--json", help="Print the table as JSON."),
) -> None:
    """Run EXPERIMENT: obtain what is pinned, measure in fresh processes, prove, store and print the table.

    Exit code 1 when a row is not valid; its reasons stand below the table.
    """
    from rvvbench.engine.service import Engine
    from rvvbench.record.render import render_json, render_markdown, render_terminal
    from rvvbench.workload.machine import select_target
    from rvvbench.workload.one_batch import run_one_batch
    from rvvbench.workload.provision import provide
    from rvvbench.workload.run_id import new_run_id

    if markdown and json_output:
        raise UsageError("--markdown and --json exclude each other")
    chosen = select_target(target)
    options = list(settings)
    if weights is not None:
        options.append(f"weights={weights}")
    if repeat is not None:
        options.append(f"fresh_processes={repeat}")
    names = variant_names(variant)
    resolved = resolve(project.manifests_dir(), experiment, chosen.kind, settings=options, variants=names or None)
    require_resolved(resolved)
    replay = replay_command(experiment, chosen.kind, names, options)
    state_dir = project.state_dir()
    with progress() as shown, Engine(state_dir) as engine:
        for name in engine.sweep():
            shown.line(f"removed {name}, left by a run that died")
        provision = provide(resolved, chosen, engine, state_dir=state_dir, progress=shown)
        run_id = new_run_id(experiment, datetime.datetime.now(datetime.UTC))
        try:
            finished = run_one_batch(
                resolved, chosen, provision, engine, state_dir=state_dir, replay=replay, progress=shown, run_id=run_id
            )
        except KeyboardInterrupt:
            err.print(f"no record; the events so far are in {state_dir / 'runs' / run_id}", soft_wrap=True)
            raise
    record = finished.record
    if json_output:
        typer.echo(render_json(record))
    elif markdown:
        typer.echo(render_markdown(record))
    else:
        render_terminal(record, out)
        out.print(f"[dim]record  {finished.path}[/]", soft_wrap=True)
    if not record.valid:
        raise CheckFailed(
            "not every row is valid; the table says why", where=str(finished.path), mend=f"logs: {finished.run_dir}"
        )


def replay_command(experiment: str, target: str, variants: list[str], settings: list[str]) -> str:
    """The command that runs the same again, for a shell; `settings` holds what --weights and --repeat became."""
    return shlex.join(
        ["rvvbench", "run", experiment, "--target", target]
        + (["--variant", ",".join(variants)] if variants else [])
        + [part for setting in settings for part in ("--set", setting)]
    )


def variant_names(options: list[str]) -> list[str]:
    """Names in all `--variant` options, each a comma-separated list; empty when there is no option.

    Raises UsageError for an empty name: it must not mean all variants.
    """
    names = [name.strip() for option in options for name in option.split(",")]
    if not all(names):
        raise UsageError(
            "--variant without the name of a variant",
            where=shlex.join(part for option in options for part in ("--variant", option)),
            mend="rvvbench list names the variants; without --variant the manifest's are run",
        )
    return names
