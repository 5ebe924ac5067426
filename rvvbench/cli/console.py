"""Terminal output: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.status import Status
from rich.text import Text

from rvvbench.errors import RvvbenchError

# A file or a pipe has no edge to wrap at: wide enough there for a table with a line per row.
_WIDTH = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120

out = Console(highlight=False, width=_WIDTH)
err = Console(stderr=True, highlight=False)


def print_json(data: Any) -> None:
    """Machine-readable output: one JSON document on stdout."""
    print_text(json.dumps(data, indent=2, sort_keys=False, ensure_ascii=False))


def print_text(text: str) -> None:
    """A result on stdout as it is, ending in a newline. Raises OSError that names standard output."""
    with _named_stdout():
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


def flush_stdout() -> None:
    """Write out what is buffered. Raises OSError that names standard output."""
    with _named_stdout():
        sys.stdout.flush()


@contextmanager
def _named_stdout() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        error.filename = error.filename or "standard output"
        raise


def print_error(error: RvvbenchError) -> None:
    """The one place where errors become text: cause, place, mend."""
    err.print(f"[bold red]error:[/] {escape(error.cause)}", soft_wrap=True)
    if error.where:
        err.print(f"  [dim]where:[/] {escape(error.where)}", soft_wrap=True)
    if error.mend:
        err.print(f"  [dim]mend: [/] {escape(error.mend)}", soft_wrap=True)


class TerminalProgress:
    """Phases with their seconds on stderr; on a terminal the running phase has a spinner and its latest line."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._title = ""
        self._line = ""
        self._phase_start = self._start
        self._status: Status | None = None

    def phase(self, title: str) -> None:
        """Close the running phase and open `title`."""
        self._close()
        self._title = title
        self._phase_start = time.monotonic()
        self._line = ""
        if err.is_terminal:
            self._status = err.status(self)
            self._status.start()
        else:
            err.print(f"{time.monotonic() - self._start:6.0f} s  {escape(title)}", soft_wrap=True)

    def line(self, text: str) -> None:
        """Show the latest line of the running phase (terminals only: logs have the rest)."""
        self._line = text.strip()

    def result(self, text: str) -> None:
        """A line that stays, above the running phase."""
        err.print(f"  {escape(text)}", soft_wrap=True)

    def __rich__(self) -> Text:
        """The running phase, its seconds and its latest line: asked anew for every frame of the spinner."""
        seconds = time.monotonic() - self._phase_start
        return Text.assemble(self._title, (f"  {seconds:.0f} s  {self._line[:100]}", "dim"))

    def finish(self) -> None:
        """Close the last phase."""
        self._close()
        self._title = ""

    def _close(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
            seconds = time.monotonic() - self._phase_start
            err.print(f"[green]✓[/] {escape(self._title)} [dim]{seconds:.1f} s[/]", soft_wrap=True)


@contextmanager
def progress() -> Iterator[TerminalProgress]:
    """A progress that is closed whatever happens."""
    shown = TerminalProgress()
    try:
        yield shown
    finally:
        shown.finish()
