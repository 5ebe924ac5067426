"""`rvvbench`: the command line. Each command lives in the module of its name; this one puts them together."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any

import typer

from rvvbench import __version__
from rvvbench.cli import build, doctor, image, inventory, lock, run, show, verify
from rvvbench.cli.console import err, print_error
from rvvbench.errors import RvvbenchError

app = typer.Typer(
    name="rvvbench",
    help="Reproducible LLM-inference benchmarks on RISC-V Vector boards.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


# Typer brings its own click or uses the installed one, by version; BadParameter's ancestor is the one in use.
WRONG_USAGE: Any = typer.BadParameter.__mro__[2]


def _version(value: bool) -> None:
    if value:
        typer.echo(f"rvvbench {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Reproducible LLM-inference benchmarks on RISC-V Vector boards."""


app.command("doctor", epilog="Example: rvvbench doctor --json")(doctor.doctor)
app.command("list", epilog="Example: rvvbench list")(inventory.inventory)
app.command("show", epilog="Example: rvvbench show llama-one-batch")(show.show)
app.command("lock", epilog="Example: rvvbench lock --check")(lock.lock)
app.add_typer(image.app, name="image")
app.command("build", epilog="Example: rvvbench build --arch riscv64")(build.build)
app.command("run", epilog="Example: rvvbench run llama-one-batch --target emulated")(run.run)
app.command("verify", epilog="Example: rvvbench verify results/")(verify.verify)


def main() -> None:
    """Entry point of the console script. Exit codes: 0 done, 1 a check failed, 2 wrong usage or manifest, 3 the
    environment lacks something, 130 interrupted."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = app(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except RvvbenchError as error:
        print_error(error)
        sys.exit(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        err.print("interrupted")
        sys.exit(130)
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except WRONG_USAGE as error:
        error.show()
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM ends a run as Ctrl-C does: through every `finally`."""
    raise KeyboardInterrupt
