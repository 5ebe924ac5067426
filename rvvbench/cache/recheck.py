"""A record's caches, held against what is still there of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rvvbench.cache.directory import change, digest, libraries, listing
from rvvbench.cache.store import CacheStore
from rvvbench.errors import RvvbenchError


def differences(proof: Mapping[str, Any], run_id: str, row: str, process: int, store: CacheStore) -> Iterator[str]:
    """What of the cache that this process left (`rvvbench/cache-proof/1`) is no longer as it was, in words.

    Nothing where the cache is not there any more, or another run's, as a later cold run of the same key leaves it.
    """
    origin = proof.get("origin") or {"run_id": run_id, "row": row, "process": process}
    try:
        kept = store.get(str(proof.get("digest")))
    except RvvbenchError as error:
        yield error.cause
        return
    if kept is None or kept.origin.plain() != origin:
        return
    there = listing(kept.folder)
    told, found = proof.get("libraries"), libraries(there)
    recorded = told if isinstance(told, dict) else {}
    changed = change(recorded, found)
    for name, what in changed.told():
        yield f"{name} {what}: {found.get(name)}, the record has {recorded.get(name)}"
    after = proof.get("after")
    wanted = after.get("sha256") if isinstance(after, dict) else None
    if not changed and digest(there) != wanted:
        damage = kept.damage() or "its manifest too"
        yield f"the directory is not the one that was recorded: {damage}"
