"""How long work tells what it is doing. The CLI renders it; everything below only calls it."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told of phases (a headline each) and of lines within them."""

    def phase(self, title: str) -> None:
        """A new phase begins."""

    def line(self, text: str) -> None:
        """Something happened within the phase."""


class Silent:
    """A progress that nobody watches."""

    def phase(self, title: str) -> None:
        """Ignored."""

    def line(self, text: str) -> None:
        """Ignored."""
