"""`rvvbench cache`: what cold runs have left for warm ones."""

from __future__ import annotations

from typing import Any

import typer
from rich.markup import escape
from rich.table import Table

from rvvbench import project
from rvvbench.cache.directory import libraries
from rvvbench.cache.store import CacheStore
from rvvbench.cli.console import out, print_json
from rvvbench.errors import RvvbenchError, UsageError

app = typer.Typer(help="The caches of compilers: what cold runs have left for warm ones.", no_args_is_help=True)

_JSON = typer.Option(False, "--json", help="Machine-readable output.")
_KEY = typer.Argument(metavar="KEY", help="The digest of a cache's key, or its beginning; see `rvvbench cache list`.")


@app.command("list", epilog="Example: rvvbench cache list")
def list_(json_output: bool = _JSON) -> None:
    """List the caches: key, what made each, and what it is of."""
    store = _store()
    entries = [_entry(store, digest) for digest in store.digests()]
    if json_output:
        print_json(entries)
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("key", "made by", "run", "libraries", "bytes", "state"):
        table.add_column(title, justify="right" if title in ("libraries", "bytes") else "left")
    for entry in entries:
        origin = entry.get("origin") or {}
        cells = (entry["key"], origin.get("row", "-"), origin.get("run_id", "-"), entry.get("libraries", "-"))
        table.add_row(*(escape(str(cell)) for cell in (*cells, f"{entry['bytes']:,}", entry["state"])))
    out.print(table)
    out.print(f"\ncaches are in {store.folder}; a warm run takes the one of its key", style="dim", soft_wrap=True)


@app.command("show", epilog="Example: rvvbench cache show 3f2a")
def show(key: str = _KEY, json_output: bool = _JSON) -> None:
    """Print every field of a cache's key, what made it and its files. Exit code 1 when a file is not as it was made."""
    store = _store()
    kept = store.get(store.find(key))
    if kept is None:
        raise UsageError(
            f"the cache {store.find(key)} was never finished",
            where=str(store.folder / store.find(key)),
            mend=f"rvvbench cache remove {store.find(key)}",
        )
    damage = kept.damage()
    if json_output:
        told = {"key": kept.digest, "fields": dict(kept.key), "origin": kept.origin.plain(), "files": dict(kept.files)}
        print_json({**told, "damage": damage})
    else:
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for name, value in {"made by": f"{kept.origin.row} of {kept.origin.run_id}", **kept.key}.items():
            table.add_row(name, escape(_shown(value)))
        table.add_row("files", f"{len(kept.files)}, {len(libraries(kept.files))} of them libraries")
        out.print(table)
    if damage is not None:
        raise RvvbenchError(
            f"the cache is not as it was made: {damage}",
            where=str(kept.folder),
            mend=f"rvvbench cache remove {kept.digest}",
        )


@app.command("remove", epilog="Example: rvvbench cache remove 3f2a")
def remove(keys: list[str] = _KEY) -> None:
    """Remove caches. What was made can be made again by a cold run."""
    store = _store()
    for digest in [store.find(key) for key in keys]:
        store.remove(digest)
        out.print(f"removed {digest}")


def _store() -> CacheStore:
    return CacheStore(project.state_dir() / "caches")


def _entry(store: CacheStore, digest: str) -> dict[str, Any]:
    """What the list says of a cache; one that cannot be read is listed too."""
    files = [path for path in (store.folder / digest).rglob("*") if path.is_file()]
    entry: dict[str, Any] = {"key": digest, "bytes": sum(path.stat().st_size for path in files)}
    try:
        kept = store.get(digest)
    except RvvbenchError as error:
        return {**entry, "state": error.cause}
    if kept is None:
        return {**entry, "state": "was never finished"}
    return {
        **entry,
        "origin": kept.origin.plain(),
        "libraries": len(libraries(kept.files)),
        "state": kept.damage() or "whole",
    }


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{name}: {part}" for name, part in value.items())
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
