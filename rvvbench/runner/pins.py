"""What the spec pins, compared with what is here, one `pin` event each. All are checked before the verdict."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from .events import Events
from .failure import PinFailed
from .spec import Common

WEIGHTS = (".safetensors", ".bin", ".pt", ".gguf")


@dataclass(frozen=True)
class Pin:
    """One comparison."""

    name: str
    expected: str | int | None
    observed: str | int | None
    ok: bool


def check(pins: Iterator[Pin], events: Events) -> None:
    """Write every pin; raise PinFailed naming all that do not hold."""
    failed = []
    for pin in pins:
        events.write("pin", name=pin.name, expected=pin.expected, observed=pin.observed, ok=pin.ok)
        if not pin.ok:
            failed.append(f"{pin.name}: expected {pin.expected}, found {pin.observed}")
    if failed:
        raise PinFailed("pins do not hold: " + "; ".join(failed))


def before_import(spec: Common, vlen_bits: int | None) -> Iterator[Pin]:
    """Everything that can be told without importing torch, so that a wrong checkpoint costs seconds."""
    yield equal("machine", spec.expect.machine, os.uname().machine)
    yield from packages(spec.expect.packages)
    if spec.expect.vlen is not None:
        yield equal("vlen", spec.expect.vlen, vlen_bits)
    if spec.expect.kernels_sha256 is not None:
        yield equal("kernels_sha256", spec.expect.kernels_sha256, kernel_library_sha256())
    yield from checkpoint(Path(spec.model_path), spec.expect.checkpoint_files)


def equal(name: str, expected: str | int | None, observed: str | int | None) -> Pin:
    """A pin that holds when both are the same."""
    return Pin(name, expected, observed, expected == observed)


def packages(expected: Mapping[str, str]) -> Iterator[Pin]:
    """Versions as importlib.metadata tells them, in the precision that is pinned."""
    for name, version in sorted(expected.items()):
        yield equal(f"package:{name}", version, as_pinned(version, package_version(name)))


def package_version(name: str) -> str | None:
    """The installed version of a distribution, None when it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def as_pinned(expected: str, observed: str | None) -> str | None:
    """The observed version without its local part (`+debian`) where the pinned one names none."""
    return observed if observed is None or "+" in expected else observed.partition("+")[0]


def checkpoint(folder: Path, expected: Mapping[str, str]) -> Iterator[Pin]:
    """Every listed file by its SHA-256, and no weights besides the listed ones, which SGLang would load too."""
    for name, digest in sorted(expected.items()):
        yield equal(f"checkpoint:{name}", digest, file_sha256(folder / name))
    present = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in WEIGHTS}
    unlisted = sorted(present - set(expected))
    yield Pin("checkpoint_unlisted_weights", None, ", ".join(unlisted) or None, not unlisted)


def file_sha256(path: Path) -> str | None:
    """Hexadecimal SHA-256 of a file, None when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def kernel_library_sha256() -> str | None:
    """SHA-256 of the one shared library in the installed `sgl_kernel`, without importing it; None when there is not
    exactly one.
    """
    found = util.find_spec("sgl_kernel")
    folders = [Path(folder) for folder in (found.submodule_search_locations or ())] if found else []
    libraries = [path for folder in folders for path in sorted(folder.rglob("*.so"))]
    return file_sha256(libraries[0]) if len(libraries) == 1 else None
