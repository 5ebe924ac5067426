"""Writing wheels whose bytes depend on their content only: fixed times, sorted names, no isolation, no network."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rvvbench.project import writing
from rvvbench.provide.file_hash import write_atomically

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""


@dataclass(frozen=True)
class WheelContent:
    """What goes into a wheel: `files` by path below site-packages, and what the `.dist-info` folder says."""

    name: str
    version: str
    tag: str
    summary: str
    files: Mapping[str, bytes]
    entry_points: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    requires_python: str = ">=3.11"

    @property
    def filename(self) -> str:
        """File name after PEP 427."""
        return f"{self.name}-{self.version}-{self.tag}.whl"


def write_wheel(content: WheelContent, folder: Path) -> Path:
    """Write the wheel into `folder`, atomically; equal content gives equal bytes. Raises EnvironmentLacks."""
    path = folder / content.filename
    with writing(path):
        folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, wheel_bytes(content))
    return path


def wheel_bytes(content: WheelContent) -> bytes:
    """The wheel; equal content gives equal bytes."""
    info = f"{content.name}-{content.version}.dist-info"
    pure = "true" if content.tag.endswith("-none-any") else "false"
    members = dict(content.files)
    members[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {content.name}\nVersion: {content.version}\nSummary: {content.summary}\n"
        f"License: Apache-2.0\nRequires-Python: {content.requires_python}\n"
    ).encode()
    members[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: rvvbench\nRoot-Is-Purelib: {pure}\nTag: {content.tag}\n"
    ).encode()
    if content.entry_points:
        lines = []
        for group, points in sorted(content.entry_points.items()):
            lines.append(f"[{group}]")
            lines += [f"{name} = {target}" for name, target in sorted(points.items())]
        members[f"{info}/entry_points.txt"] = ("\n".join(lines) + "\n").encode()
    record = [f"{name},{_record_hash(data)},{len(data)}" for name, data in sorted(members.items())]
    record.append(f"{info}/RECORD,,")
    members[f"{info}/RECORD"] = ("\n".join(record) + "\n").encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        ordered = sorted(members, key=lambda name: (name.startswith(info), name))
        for name in ordered:
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, members[name])
    return stream.getvalue()


def _record_hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"sha256={digest}"
