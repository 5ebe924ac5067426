"""How long work tells what it is doing. The CLI renders it; everything below only calls it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told of phases (a headline each), of passing lines within them, and of results that stay to be read."""

    def phase(self, title: str) -> None:
        """A new phase begins."""

    def line(self, text: str) -> None:
        """Something happened within the phase."""

    def result(self, text: str) -> None:
        """Something came out that a person wants to read later too."""


class Silent:
    """A progress that nobody watches."""

    def phase(self, title: str) -> None:
        """Ignored."""

    def line(self, text: str) -> None:
        """Ignored."""

    def result(self, text: str) -> None:
        """Ignored."""
