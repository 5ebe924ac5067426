"""Our packages of Python as wheels: the SGLang plugin, `kernels/python/sglang_rvv`, and `rvv_inductor` beside it."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from rvvbench.project import writing
from rvvbench.provide.file_hash import write_atomically
from rvvbench.provide.wheelfile import WheelContent, wheel_bytes


@dataclass(frozen=True)
class PluginWheel:
    """The wheel and its hash."""

    path: Path
    sha256: str
    version: str


def plugin_content(source: Path) -> WheelContent:
    """Name, version and entry points from `pyproject.toml`; files from `src/`, everything that is no byte-code, and
    those that hatchling is told to include from elsewhere (`force-include`: path from the source -> path in the wheel).
    """
    told = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))
    table = told["project"]
    wheel = told.get("tool", {}).get("hatch", {}).get("build", {}).get("targets", {}).get("wheel", {})
    base = source / "src"
    files = {
        path.relative_to(base).as_posix(): path.read_bytes()
        for path in sorted(base.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and not path.name.endswith(".egg-info")
    }
    files |= {str(place): (source / path).read_bytes() for path, place in wheel.get("force-include", {}).items()}
    return WheelContent(
        name=str(table["name"]).replace("-", "_"),
        version=str(table["version"]),
        tag="py3-none-any",
        summary=str(table.get("description", "")),
        files=files,
        entry_points=table.get("entry-points", {}),
    )


def build_plugin(source: Path, folder: Path) -> PluginWheel:
    """Write the plugin's wheel below `folder`; equal sources give equal bytes.

    The wheel's own folder is named by its hash: checkouts that differ share a home without changing each other's wheel.
    """
    content = plugin_content(source)
    data = wheel_bytes(content)
    sha256 = hashlib.sha256(data).hexdigest()
    path = folder / sha256[:16] / content.filename
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
    return PluginWheel(path, sha256, content.version)
