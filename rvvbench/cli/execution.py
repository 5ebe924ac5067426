"""What `run`, `serve` and `eval` share: from a resolved manifest to a stored record and a printed table."""

from __future__ import annotations

import datetime
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from rvvbench import project
from rvvbench.cli.console import err, out, print_text, progress
from rvvbench.errors import CheckFailed, UsageError
from rvvbench.manifest.resolve import Resolved, require_resolved, resolve
from rvvbench.target.select import Target

if TYPE_CHECKING:
    from rvvbench.provide.dataset import TaskData
    from rvvbench.record.schema import Record

# Options of all of them.
TARGET = typer.Option("auto", "--target", help="auto, board, emulated or host.")
VARIANT = typer.Option(
    [], "--variant", metavar="NAME[,NAME]", help="Variants instead of the manifest's; can be given several times."
)
WEIGHTS = typer.Option(None, "--weights", help="hub or synthetic.")
CACHE = typer.Option(
    None,
    "--cache",
    help="Of variants that compile: cold, warm (what cold left) or both. Default: the manifest's.",
)
SETTINGS = typer.Option([], "--set", metavar="KEY=VALUE", help="Override a value of the manifest.")
MARKDOWN = typer.Option(False, "--markdown", help="Print the table as Markdown.")
JSON = typer.Option(False, "--json", help="Print the table as JSON.")


@dataclass(frozen=True)
class Order:
    """What the command line asks for. `settings` holds KEY=VALUE of --set and of every option that stands for one;
    `given` the words of options that stand for none.
    """

    command: str
    experiment: str
    target: str
    variants: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    def resolved(self) -> tuple[Resolved, Target]:
        """The manifest that it means on this machine; raises as `resolve` and `select_target` do."""
        from rvvbench.workload.machine import select_target

        chosen = select_target(self.target)
        resolved = resolve(
            project.manifests_dir(),
            self.experiment,
            chosen.kind,
            settings=list(self.settings),
            variants=list(self.variants) or None,
        )
        require_resolved(resolved)
        return resolved, chosen

    def replay(self, target: str) -> str:
        """The command that runs the same again, for a shell."""
        return shlex.join(
            ["rvvbench", *self.command.split(), self.experiment, "--target", target, *self.given]
            + (["--variant", ",".join(self.variants)] if self.variants else [])
            + [part for setting in self.settings for part in ("--set", setting)]
        )


@dataclass(frozen=True)
class Output:
    """How the result is printed; one of the first two at most."""

    markdown: bool = False
    json: bool = False
    definitions: bool = False

    def __post_init__(self) -> None:
        if self.markdown and self.json:
            raise UsageError("--markdown and --json exclude each other")


def execute(order: Order, output: Output, resolved: Resolved, chosen: Target, *, data: TaskData | None = None) -> None:
    """Provide, run, store, print; `data` is what a task takes instead of the pinned data set. Raises CheckFailed where
    a row is not valid.
    """
    from rvvbench.engine.service import Engine
    from rvvbench.record.failure import mends
    from rvvbench.workload.provision import provide
    from rvvbench.workload.run import run
    from rvvbench.workload.run_id import new_run_id

    state_dir = project.state_dir()
    with progress() as shown, Engine(state_dir) as engine:
        for name in engine.sweep():
            shown.line(f"removed {name}, left by a run that died")
        provision = provide(resolved, chosen, engine, state_dir=state_dir, progress=shown, data=data)
        run_id = new_run_id(order.experiment, datetime.datetime.now(datetime.UTC))
        try:
            finished = run(
                resolved,
                chosen,
                provision,
                engine,
                state_dir=state_dir,
                replay=order.replay(chosen.kind),
                progress=shown,
                run_id=run_id,
            )
        except KeyboardInterrupt:
            err.print(f"no record; the events so far are in {state_dir / 'runs' / run_id}", soft_wrap=True)
            raise
    print_record(finished.record, output)
    if not output.json and not output.markdown:
        out.print(f"[dim]record  {finished.path}[/]", soft_wrap=True)
    if not finished.record.valid:
        raise CheckFailed(
            "not every row is valid; the table says why",
            where=str(finished.path),
            mend="; ".join([*mends(finished.record), f"logs: {finished.run_dir}"]),
        )


def print_record(record: Record, output: Output) -> None:
    """The record's table on standard output."""
    from rvvbench.record.render import render_json, render_markdown, render_terminal

    if output.json:
        print_text(render_json(record, definitions=output.definitions))
    elif output.markdown:
        print_text(render_markdown(record, definitions=output.definitions))
    else:
        render_terminal(record, out, definitions=output.definitions)


CACHE_STATES = {"cold": "cold", "warm": "warm", "both": "cold, warm"}


def settings_of(settings: list[str], *, weights: str | None, repeat: int | None, cache: str | None = None) -> list[str]:
    """`--set` options, and what --weights, --repeat and --cache stand for. Raises UsageError."""
    options = list(settings)
    if weights is not None:
        options.append(f"weights={weights}")
    if repeat is not None:
        options.append(f"fresh_processes={repeat}")
    if cache is not None:
        if cache not in CACHE_STATES:
            raise UsageError(
                f"a cache is cold, warm or both, not {cache!r}", where=f"--cache {cache}", mend="e.g. --cache both"
            )
        options.append(f"cache_states=[{CACHE_STATES[cache]}]")
    return options


def check_cache(cache: str | None, resolved: Resolved) -> None:
    """Raise UsageError where --cache is given and nothing compiles."""
    if cache is not None and not any(variant.compiles for variant in resolved.variants):
        names = ", ".join(variant.name for variant in resolved.variants)
        raise UsageError(
            f"--cache is for variants that compile, and none of {names} does",
            where=f"--cache {cache}",
            mend="leave it out, or name a variant that compiles, as inductor-packed",
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
