"""`rvvbench run`: the main job."""

from __future__ import annotations

import typer

from rvvbench.cli.execution import (
    CACHE,
    JSON,
    MARKDOWN,
    SETTINGS,
    TARGET,
    VARIANT,
    WEIGHTS,
    Order,
    Output,
    check_cache,
    execute,
    settings_of,
    variant_names,
)


def run(
    experiment: str = typer.Argument(help="Name of an experiment; see `rvvbench list`."),
    target: str = TARGET,
    variant: list[str] = VARIANT,
    repeat: int | None = typer.Option(
        None, "--repeat", min=1, help="Fresh processes per variant. Default: the manifest's."
    ),
    weights: str | None = WEIGHTS,
    cache: str | None = CACHE,
    settings: list[str] = SETTINGS,
    markdown: bool = MARKDOWN,
    json_output: bool = JSON,
) -> None:
    """Run EXPERIMENT: obtain what is pinned, measure in fresh processes, prove, store and print the table.

    Serving experiments run too, with the loads of their manifest; `rvvbench serve` has options for other loads.
    Exit code 1 when a row is not valid; its reasons stand below the table.
    """
    output = Output(markdown=markdown, json=json_output)
    options = settings_of(settings, weights=weights, repeat=repeat, cache=cache)
    order = Order("run", experiment, target, tuple(variant_names(variant)), tuple(options))
    resolved, chosen = order.resolved()
    check_cache(cache, resolved)
    execute(order, output, resolved, chosen)
