"""Reading what the kernel tells through files, under roots that a test can replace."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Roots:
    """Where the kernel's files are."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    etc: Path = Path("/etc")

    def cpufreq_policies(self) -> list[Path]:
        """Folders of the CPU frequency policies, in the order of their numbers."""
        return _numbered(self.sys / "devices/system/cpu/cpufreq", "policy")

    def thermal_zones(self) -> list[Path]:
        return _numbered(self.sys / "class/thermal", "thermal_zone")

    def cooling_devices(self) -> list[Path]:
        return _numbered(self.sys / "class/thermal", "cooling_device")


def _numbered(folder: Path, prefix: str) -> list[Path]:
    found = [path for path in folder.glob(f"{prefix}*") if path.name.removeprefix(prefix).isdigit()]
    return sorted(found, key=lambda path: int(path.name.removeprefix(prefix)))


def read_text(path: Path) -> str | None:
    """The file without white space at its ends; None where it is missing, empty or refuses to be read.

    A sensor that is switched off answers with an error instead of a number; device-tree strings end in a zero byte.
    """
    try:
        return path.read_text(errors="replace").strip("\0 \t\n") or None
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """The whole number in a file; None where there is none."""
    text = read_text(path)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def read_table(path: Path, separator: str | None = None) -> dict[str, str]:
    """The lines "name<separator>value" of a file, the first of each name; empty where the file cannot be read."""
    found: dict[str, str] = {}
    for line in (read_text(path) or "").splitlines():
        name, *value = line.split(separator, 1)
        if value:
            found.setdefault(name.strip(), value[0].strip())
    return found
