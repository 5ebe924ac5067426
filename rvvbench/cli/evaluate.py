"""`rvvbench eval`: accuracy beside speed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rvvbench.cli.execution import (
    JSON,
    MARKDOWN,
    SETTINGS,
    TARGET,
    VARIANT,
    WEIGHTS,
    Order,
    Output,
    execute,
    settings_of,
    variant_names,
)
from rvvbench.errors import UsageError
from rvvbench.manifest.models import Eval

if TYPE_CHECKING:
    from rvvbench.provide.dataset import TaskData

app = typer.Typer(help="Put a task to a server and count the right answers.", no_args_is_help=True)


@app.callback()
def root() -> None:
    """Put a task to a server and count the right answers."""


@app.command("gsm8k", epilog="Example: rvvbench eval gsm8k --questions 20 --variant torch-native,rvv-kernels")
def gsm8k(
    experiment: str = typer.Argument("llama-gsm8k", help="Name of an experiment with this task; see `rvvbench list`."),
    questions: int | None = typer.Option(
        None, "--questions", min=1, help="Ask the first N of the test split. Default: the manifest's, for the target."
    ),
    data: Path | None = typer.Option(
        None,
        "--data",
        metavar="FOLDER|FILE",
        help="Other data than the pinned: a folder with train.jsonl and test.jsonl, or one file, whose first entries "
        "are the examples. Its hash is recorded, and the heading names it.",
    ),
    concurrency: int | None = typer.Option(None, "--concurrency", min=1, help="Questions at once. Default: 1."),
    target: str = TARGET,
    variant: list[str] = VARIANT,
    repeat: int | None = typer.Option(
        None, "--repeat", min=1, help="Fresh servers per variant. Default: the manifest's, for the target."
    ),
    weights: str | None = WEIGHTS,
    settings: list[str] = SETTINGS,
    markdown: bool = MARKDOWN,
    json_output: bool = JSON,
) -> None:
    """Grade school mathematics, 8 examples before each question: how many answers of each variant are right.

    Exit code 1 when a row is not valid; its reasons stand below the table. A low accuracy is a result, not a failure.
    """
    output = Output(markdown=markdown, json=json_output)
    options = settings_of(settings, weights=weights, repeat=repeat)
    for key, value in (("questions", questions), ("concurrency", concurrency)):
        if value is not None:
            options.append(f"workload.{key}={value}")
    given = () if data is None else ("--data", str(data))
    order = Order("eval gsm8k", experiment, target, tuple(variant_names(variant)), tuple(options), given)
    resolved, chosen = order.resolved()
    workload = resolved.experiment.workload
    if not isinstance(workload, Eval) or workload.task != "gsm8k":
        raise UsageError(
            f"{experiment} is not this task: its workload is {workload.kind}",
            where=resolved.experiment_document.where(("workload", "kind")),
            mend=f"rvvbench run {shlex.quote(experiment)}",
        )
    execute(order, output, resolved, chosen, data=None if data is None else _local(data, workload))


def _local(data: Path, workload: Eval) -> TaskData:
    """The data of this machine, known to be enough before anything starts."""
    from rvvbench.provide.dataset import local_dataset
    from rvvbench.workload.gsm8k import task

    found = local_dataset(data)
    task(found, workload.shots, workload.questions)
    return found
