"""The SGLang plugin as a wheel, made from `kernels/python/sglang_rvv` in this project."""

from __future__ import annotations

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

from rvvbench.provide.wheelfile import WheelContent, write_wheel


@dataclass(frozen=True)
class PluginWheel:
    """The wheel and its hash."""

    path: Path
    sha256: str
    version: str


def plugin_content(source: Path) -> WheelContent:
    """Name, version and entry points from `pyproject.toml`; files from `src/`, everything that is no byte-code."""
    project = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    base = source / "src"
    files = {
        path.relative_to(base).as_posix(): path.read_bytes()
        for path in sorted(base.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts and not path.name.endswith(".egg-info")
    }
    return WheelContent(
        name=str(project["name"]).replace("-", "_"),
        version=str(project["version"]),
        tag="py3-none-any",
        summary=str(project.get("description", "")),
        files=files,
        entry_points=project.get("entry-points", {}),
    )


def build_plugin(source: Path, folder: Path) -> PluginWheel:
    """Write the plugin's wheel into `folder`; equal sources give equal bytes."""
    content = plugin_content(source)
    path = write_wheel(content, folder)
    return PluginWheel(path, hashlib.sha256(path.read_bytes()).hexdigest(), content.version)
