"""Everything that the checks look at, read once."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rvvbench import project
from rvvbench.engine.binfmt import Emulator, inspect_emulator
from rvvbench.engine.facts import HostFacts, read_facts
from rvvbench.errors import RvvbenchError
from rvvbench.observe.conditions import Conditions, snapshot
from rvvbench.observe.machine import machine_facts
from rvvbench.runner.hardware import probe

ImageKey = tuple[str, str]


@dataclass(frozen=True)
class Room:
    """A place on disk: its path, the bytes free there, and which file system it is on (st_dev)."""

    path: Path
    free_bytes: int
    device: int


@dataclass(frozen=True)
class Facts:
    """What `gather_facts` found. `None` means: not there.

    `machine`: as `observe.machine.machine_facts` says. `podman_version`: (4, 3, 1). `mmdebstrap`, `arch_test`: paths.
    `images`: {(recipe, architecture)}, or None with `images_reason`. `vlen_bits`: None with `vlen_reason`.
    `subordinate_ids`: whether containers without root can have users of their own; None as root.
    """

    host: HostFacts
    machine: dict[str, Any]
    conditions: Conditions
    python: tuple[int, int, int]
    podman_version: tuple[int, ...] | None
    mmdebstrap: str | None
    arch_test: str | None
    emulator: Emulator
    state: Room
    storage: Room
    images: frozenset[ImageKey] | None
    images_reason: str | None
    vlen_bits: int | None
    vlen_reason: str | None
    subordinate_ids: bool | None


def gather_facts(images: Callable[[], frozenset[ImageKey]] | None = None) -> Facts:
    """Look at this machine. Changes nothing; asks podman for its images, by way of a private service where none runs.

    `images` replaces that question. Takes about a second.
    """
    host = read_facts()
    found, images_reason = _images(images or _images_of_podman)
    hardware = probe()
    state = project.state_dir()
    return Facts(
        host=host,
        machine=machine_facts(),
        conditions=snapshot(),
        python=sys.version_info[:3],
        podman_version=_podman_version(host),
        mmdebstrap=_which("mmdebstrap"),
        arch_test=_which("arch-test"),
        emulator=inspect_emulator(),
        state=room(state),
        storage=room(_podman_storage(host)),
        images=found,
        images_reason=images_reason,
        vlen_bits=hardware.vlen_bits,
        vlen_reason=hardware.vlen_reason,
        subordinate_ids=None if host.is_root else _has_subordinate_ids(),
    )


def room(path: Path) -> Room:
    """The room at `path`, or at its nearest parent that exists."""
    place = path.absolute()
    while not place.exists():
        place = place.parent
    return Room(path, shutil.disk_usage(place).free, place.stat().st_dev)


def parse_version(text: str) -> tuple[int, ...] | None:
    """The first version number in a program's own words: "podman version 4.3.1" is (4, 3, 1)."""
    match = re.search(r"\d+(\.\d+)+", text)
    return None if match is None else tuple(int(part) for part in match.group().split("."))


def _which(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin"]))


def _podman_version(host: HostFacts) -> tuple[int, ...] | None:
    return None if host.podman is None else parse_version(_said(host.podman, "--version"))


def _podman_storage(host: HostFacts) -> Path:
    said = "" if host.podman is None else _said(host.podman, "info", "--format", "{{.Store.GraphRoot}}").strip()
    if said.startswith("/"):
        return Path(said)
    return Path("/var/lib/containers") if host.is_root else Path.home() / ".local/share/containers"


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _images(ask: Callable[[], frozenset[ImageKey]]) -> tuple[frozenset[ImageKey] | None, str | None]:
    try:
        return ask(), None
    except RvvbenchError as error:
        return None, error.cause


def _images_of_podman() -> frozenset[ImageKey]:
    from rvvbench.engine.service import Engine
    from rvvbench.image.catalog import list_images

    with Engine(project.state_dir()) as engine:
        return frozenset((image.recipe, image.arch) for image in list_images(engine) if image.name is not None)


def _has_subordinate_ids() -> bool:
    """Whether this user has ranges in both files (subuid(5)); a line names the user or the number."""
    import pwd

    names = {pwd.getpwuid(os.getuid()).pw_name, str(os.getuid())}
    files = (Path("/etc/subuid"), Path("/etc/subgid"))
    return all(
        file.exists() and any(line.split(":")[0] in names for line in file.read_text().splitlines()) for file in files
    )
