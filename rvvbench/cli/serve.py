"""`rvvbench serve`: a server, asked as its users ask it."""

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
from rvvbench.errors import UsageError
from rvvbench.manifest.models import Serving

CROSS_CHECK_REQUESTS = 30


def serve(
    experiment: str = typer.Argument("llama-serve", help="Name of a serving experiment; see `rvvbench list`."),
    concurrency: str | None = typer.Option(
        None,
        "--concurrency",
        metavar="N[,N]",
        help="Closed loops: how many requests are in flight, one load each. Default: the manifest's.",
    ),
    requests: int | None = typer.Option(
        None, "--requests", min=1, help="Measured requests of each load. Default: the manifest's."
    ),
    rate: str | None = typer.Option(
        None,
        "--rate",
        metavar="R[,R]",
        help="Open loops: requests per second, whatever the server does. Without --concurrency they replace the "
        "manifest's closed loops.",
    ),
    arrivals: str = typer.Option("poisson", "--arrivals", help="Of open loops: poisson (seeded) or fixed."),
    target: str = TARGET,
    variant: list[str] = VARIANT,
    repeat: int | None = typer.Option(
        None, "--repeat", min=1, help="Fresh servers per variant. Default: the manifest's, for the target."
    ),
    weights: str | None = WEIGHTS,
    cache: str | None = CACHE,
    settings: list[str] = SETTINGS,
    definitions: bool = typer.Option(
        False, "--definitions", help="Also print the figures as SGLang, vLLM, guidellm and MLPerf define them."
    ),
    cross_check: bool = typer.Option(
        False,
        "--cross-check",
        help="Also run SGLang's own serving benchmark against the same server (30 requests unless --requests says).",
    ),
    markdown: bool = MARKDOWN,
    json_output: bool = JSON,
) -> None:
    """Serve EXPERIMENT: a fresh server per variant and repetition meets every load in turn; one row for each load.

    Start-up is not part of any latency. Exit code 1 when a row is not valid; its reasons stand below the table.
    """
    output = Output(markdown=markdown, json=json_output, definitions=definitions or cross_check)
    options = settings_of(settings, weights=weights, repeat=repeat, cache=cache)
    options += loads_settings(concurrency, rate, arrivals)
    if requests is None and cross_check:
        requests = CROSS_CHECK_REQUESTS
    if requests is not None:
        options.append(f"workload.requests={requests}")
    if cross_check:
        options += [f"workload.cross_check={{requests: {requests}}}", "workload.server.skip_tokenizer_init=false"]
    order = Order("serve", experiment, target, tuple(variant_names(variant)), tuple(options))
    resolved, chosen = order.resolved()
    check_cache(cache, resolved)
    if not isinstance(resolved.experiment.workload, Serving):
        raise UsageError(
            f"{experiment} starts no server: its workload is {resolved.experiment.workload.kind}",
            where=resolved.experiment_document.where(("workload", "kind")),
            mend=f"rvvbench run {experiment}",
        )
    execute(order, output, resolved, chosen)


def loads_settings(concurrency: str | None, rate: str | None, arrivals: str) -> list[str]:
    """What --concurrency, --rate and --arrivals stand for; --rate alone leaves no closed loop.

    Raises UsageError for what is no list of numbers.
    """
    found = []
    if concurrency is not None:
        found.append(f"workload.concurrency=[{', '.join(str(int(c)) for c in _numbers(concurrency, '--concurrency'))}]")
    elif rate is not None:
        found.append("workload.concurrency=[]")
    if arrivals not in ("poisson", "fixed"):
        raise UsageError(
            f"arrivals are poisson or fixed, not {arrivals!r}",
            where=f"--arrivals {arrivals}",
            mend="--arrivals poisson or --arrivals fixed, beside --rate",
        )
    if rate is not None:
        opened = [f"{{arrivals: {arrivals}, rate_per_s: {number!r}}}" for number in _numbers(rate, "--rate")]
        found.append(f"workload.open_loops=[{', '.join(opened)}]")
    return found


def _numbers(text: str, option: str) -> list[float]:
    mend = "e.g. --concurrency 1,2" if option == "--concurrency" else "e.g. --rate 0.5,1"
    numbers = []
    for part in text.split(","):
        try:
            number = float(part)
        except ValueError:
            number = -1.0
        whole = option != "--concurrency" or number.is_integer()
        if not (0 < number < 1e6 and whole):
            raise UsageError(f"{part.strip()!r} is no number that {option} takes", where=f"{option} {text}", mend=mend)
        numbers.append(number)
    return numbers
