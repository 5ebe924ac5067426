"""`rvvbench`: the command line. Each command lives in the module of its name; this one puts them together."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import Any

import typer

from rvvbench import __version__
from rvvbench.cli import build, cache, doctor, evaluate, image, inventory, kernels, lock, run, serve, show, verify
from rvvbench.cli.console import err, flush_stdout, print_error
from rvvbench.errors import EnvironmentLacks, RvvbenchError

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

INTERRUPTED = 130


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
app.add_typer(kernels.app, name="kernels")
app.command("run", epilog="Example: rvvbench run llama-one-batch --target emulated")(run.run)
app.command("serve", epilog="Example: rvvbench serve --concurrency 1,2 --target emulated")(serve.serve)
app.add_typer(evaluate.app, name="eval")
app.add_typer(cache.app, name="cache")
app.command("verify", epilog="Example: rvvbench verify results/")(verify.verify)


def main() -> None:
    """Entry point of the console script. Exit codes: 0 done, 1 a check failed, 2 wrong usage or manifest, 3 the
    environment lacks something, 130 interrupted."""
    signal.signal(signal.SIGTERM, _terminate)
    # Under nohup SIGHUP is ignored on purpose, and stays so.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _terminate)
    try:
        code = app(standalone_mode=False)
        flush_stdout()
        if code == INTERRUPTED:  # Typer caught the interrupt itself
            _say_interrupted()
        sys.exit(code if isinstance(code, int) else 0)
    except RvvbenchError as error:
        print_error(error)
        sys.exit(error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _say_interrupted()
        sys.exit(INTERRUPTED)
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except WRONG_USAGE as error:
        error.show()
        sys.exit(2)
    except BrokenPipeError:
        _drop_stdout()
        sys.exit(1)
    except OSError as error:
        lacks = _lacks(error)
        with contextlib.suppress(OSError):
            print_error(lacks)
        sys.exit(lacks.exit_code)


def _say_interrupted() -> None:
    # After a hangup the terminal may be gone.
    with contextlib.suppress(OSError):
        err.print("interrupted")


def _lacks(error: OSError) -> EnvironmentLacks:
    """What no command foresaw of the system's refusals (a full disk, a read-only folder), as an error of ours."""
    where = " -> ".join(
        os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)
    )
    try:
        sys.stdout.flush()
    except OSError:
        where = where or "standard output"
        _drop_stdout()
    return EnvironmentLacks(
        f"the system refused an operation: {error.strerror or error or type(error).__name__}",
        where=where or None,
        mend="rvvbench doctor examines this machine",
    )


def _drop_stdout() -> None:
    """Let what is still buffered go nowhere: Python would fail on it again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    """SIGTERM and SIGHUP end a run as Ctrl-C does: through every `finally`."""
    raise KeyboardInterrupt
