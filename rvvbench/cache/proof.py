"""What one process did to its cache, as seen from outside (`rvvbench/cache-proof/1`): a part of its record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rvvbench.cache.compiler import calls
from rvvbench.cache.directory import Listing, change, digest, libraries
from rvvbench.cache.prepare import Prepared

SCHEMA = "rvvbench/cache-proof/1"


def proof(prepared: Prepared, after: Listing, log: Path) -> dict[str, Any]:
    """`after`: the listing when the process had ended; `log`: where the compiler's wrapper wrote, if it was called.

    `before` and `after` are told by their digests, the difference by its entries, shared libraries by their hashes.
    """
    found = change(prepared.before, after)
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return {
        "schema": SCHEMA,
        "state": prepared.state,
        "key": prepared.key.plain(),
        "digest": prepared.key.digest,
        "origin": None if prepared.origin is None else prepared.origin.plain(),
        "before": {"entries": len(prepared.before), "sha256": digest(prepared.before)},
        "after": {"entries": len(after), "sha256": digest(after)},
        "added": list(found.added),
        "changed": list(found.changed),
        "removed": list(found.removed),
        "libraries": libraries(after),
        "compiler_calls": [call.plain() for call in calls(text)],
    }
