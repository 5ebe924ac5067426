"""The shared objects of TorchInductor that this process has loaded, from /proc."""

from __future__ import annotations

from pathlib import Path

MAPS = Path("/proc/self/maps")


def shared_objects(folder: str, maps: str | None = None) -> frozenset[str]:
    """Paths of the `.so` files below `folder`; `maps` is the text of /proc/self/maps, by default this process's."""
    text = MAPS.read_text(errors="replace") if maps is None else maps
    paths = (line.split(maxsplit=5)[5:] for line in text.splitlines())
    return frozenset(path[0] for path in paths if path and path[0].startswith(f"{folder}/") and path[0].endswith(".so"))
