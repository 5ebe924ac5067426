"""What a build from source will take, guessed from its size before it starts: hours are to be known of beforehand."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

COMPILED = (".c", ".cc", ".cpp", ".cxx")

NATIVE_FILE_S = 15.0
"""Assumed. A file with all of ATen's headers took GCC 16 48 s on a busy amd64 machine; most have far fewer."""

EMULATED_FACTOR = 4.4
"""The same file in the riscv64 image, emulated on the same machine: 211 s."""

DISK_FACTOR = 4
"""Of the sources with their history: a copy of them, and what is compiled and linked."""


@dataclass(frozen=True)
class BuildCost:
    """`files`: C and C++ files of a source tree; `source_bytes`: its size, with its history."""

    files: int
    source_bytes: int

    def seconds(self, parallel: int, emulated: bool) -> float:
        """The guess, if every file is compiled: no project compiles all that it carries, so this is an upper end."""
        each_s = NATIVE_FILE_S * (EMULATED_FACTOR if emulated else 1.0)
        return self.files * each_s / parallel

    @property
    def disk_bytes(self) -> int:
        """Room that the build takes beside the checkout, a guess."""
        return DISK_FACTOR * self.source_bytes

    def told(self, parallel: int, emulated: bool, free_bytes: int) -> list[str]:
        """Sentences for whoever waits; none for a small project."""
        seconds = self.seconds(parallel, emulated)
        lines = []
        if seconds >= 60:
            lines.append(
                f"{self.files} C and C++ files, {parallel} at once{' under emulation' if emulated else ''}: about "
                f"{_duration(seconds)} as a guess from a PC's cores, longer on a board; Ctrl-C stops it and leaves "
                f"nothing behind"
            )
        if self.disk_bytes >= 1e9 or free_bytes < self.disk_bytes:
            lines.append(f"disk: about {self.disk_bytes / 1e9:.1f} GB needed, {free_bytes / 1e9:.1f} GB free")
        if free_bytes < self.disk_bytes:
            lines.append("that may be too little: free space, or set RVVBENCH_HOME to a larger disk")
        return lines


def cost_of(folder: Path) -> BuildCost:
    """Count a source tree."""
    files, size = 0, 0
    for path, _, names in os.walk(folder):
        for name in names:
            files += name.endswith(COMPILED)
            size += Path(path, name).lstat().st_size
    return BuildCost(files, size)


def _duration(seconds: float) -> str:
    if seconds < 3600:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:.0f} hours"
