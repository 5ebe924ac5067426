"""What is in the directory of a cache, and what a process changed in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rvvbench.provide import tree

Listing = Mapping[str, str]
"""Entry -> SHA-256 of a file, or what else it is (`tree.listing`). Times and modes are no part of it."""

LIBRARY = ".so"


@dataclass(frozen=True)
class Changed:
    """Entries of a directory that are new, that are others than before, and that are gone; each sorted."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    def told(self) -> Iterator[tuple[str, str]]:
        """Each entry, and in words what became of it: what is wrong with a file first, then what is not to be there."""
        for entries, what in ((self.changed, "was changed"), (self.removed, "is missing"), (self.added, "is new")):
            yield from ((entry, what) for entry in entries)


def listing(folder: Path) -> dict[str, str]:
    """Every entry below `folder`, sorted."""
    return dict(sorted(tree.listing(folder).items()))


def change(before: Listing, after: Listing) -> Changed:
    """From one look to the next."""
    return Changed(
        tuple(sorted(after.keys() - before.keys())),
        tuple(sorted(name for name in before.keys() & after.keys() if before[name] != after[name])),
        tuple(sorted(before.keys() - after.keys())),
    )


def digest(found: Listing) -> str:
    """SHA-256 (64 hex digits) over every entry with its content."""
    text = json.dumps(dict(found), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def libraries(found: Listing) -> dict[str, str]:
    """The shared libraries among them: path -> SHA-256."""
    return {name: content for name, content in sorted(found.items()) if name.endswith(LIBRARY)}
