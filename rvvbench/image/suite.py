"""What a suite serves: the versions of a recipe's packages and of everything they need."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_INST = re.compile(r"^Inst (?P<name>[a-z0-9][a-z0-9+.-]*)(?::\S+)? (?:\[[^\]]*\] )?\((?P<version>\S+) ")


@dataclass(frozen=True)
class Difference:
    """A package whose version is not the locked one. None: not in the lock, or no longer needed or served."""

    name: str
    locked: str | None
    served: str | None

    def __str__(self) -> str:
        return f"{self.name}: locked {self.locked or 'absent'}, served {self.served or 'absent'}"


def parse_simulation(lines: Sequence[str]) -> dict[str, str]:
    """Package versions in the output of apt's simulation ("Inst name (version origin [arch])")."""
    return {match["name"]: match["version"] for line in lines if (match := _INST.match(line))}


def parse_status(text: str) -> dict[str, str]:
    """Package versions in the text of /var/lib/dpkg/status."""
    found = {}
    for stanza in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith(" "))
        if "Package" in fields and fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = fields["Version"]
    return dict(sorted(found.items()))


def differences(locked: Mapping[str, str], served: Mapping[str, str]) -> tuple[Difference, ...]:
    """Where `served` differs from `locked`, by name."""
    names = sorted(set(locked) | set(served))
    return tuple(
        Difference(name, locked.get(name), served.get(name)) for name in names if locked.get(name) != served.get(name)
    )
