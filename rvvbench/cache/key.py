"""The compatibility key: everything that a compiled cache depends on, by name. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

KEY_DIGITS = 16
"""Hex digits of a key's digest that name its directory."""


@dataclass(frozen=True)
class CacheKey:
    """Two processes can share a cache exactly when every field is equal. All values are JSON data.

    `stack`: name, image digest and what was built from source. `isa`: machine, and what was declared of its extensions.
    `march`: what is passed to the compiler besides what `headers` says. `compiler`: its name and the version of its
    package. `headers` {wheel: SHA-256} of the packages that generate code and hold what it includes; the kernels' where
    the variant loads them. `policy`: the variant's fields on compiling. `model`: type and [N, K] of each projection.
    `artifacts`: names of those that the workload takes. `environment`: variables that the compiler's own keys read.
    """

    stack: Mapping[str, Any]
    isa: str
    vlen: int | None
    march: str | None
    compiler: Mapping[str, str]
    threads: int
    headers: Mapping[str, str]
    policy: Mapping[str, Any]
    model: Mapping[str, Any]
    artifacts: tuple[str, ...]
    environment: Mapping[str, str]

    def plain(self) -> dict[str, Any]:
        """As JSON data, read back so that it equals what a file gives."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    @property
    def digest(self) -> str:
        """The first hex digits of the SHA-256 over the fields."""
        return digest_of(self.plain())


FIELDS: tuple[str, ...] = tuple(field.name for field in fields(CacheKey))


@dataclass(frozen=True)
class Difference:
    """A field that is not the same: what this run has, and what the other cache was made with."""

    field: str
    wanted: Any
    made_with: Any

    @property
    def text(self) -> str:
        """`threads: 1 here, made with 2`; of a table only the members that differ."""
        if isinstance(self.wanted, Mapping) and isinstance(self.made_with, Mapping):
            names = [n for n in dict.fromkeys([*self.wanted, *self.made_with]) if self._of(n)[0] != self._of(n)[1]]
            parts = [f"{self.field}.{name}: {_said(self._of(name))}" for name in names]
            return "; ".join(parts)
        return f"{self.field}: {_said((self.wanted, self.made_with))}"

    def _of(self, name: str) -> tuple[Any, Any]:
        return self.wanted.get(name), self.made_with.get(name)


def differences(wanted: Mapping[str, Any], made_with: Mapping[str, Any]) -> tuple[Difference, ...]:
    """The fields (as `CacheKey.plain` gives them) that differ, in their order; one that a key lacks is None there."""
    return tuple(
        Difference(name, wanted.get(name), made_with.get(name))
        for name in dict.fromkeys([*FIELDS, *made_with])
        if wanted.get(name) != made_with.get(name)
    )


def digest_of(plain: Mapping[str, Any]) -> str:
    """The digest of the fields of a key."""
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:KEY_DIGITS]


def _said(pair: tuple[Any, Any]) -> str:
    here, there = (_shown(value) for value in pair)
    return f"{here} here, made with {there}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)[:100]


def nearest(wanted: Mapping[str, Any], others: Iterator[Mapping[str, Any]]) -> tuple[Difference, ...] | None:
    """How the key differs from that of the others that is most alike; None where there is no other."""
    found = [differences(wanted, other) for other in others]
    return min(found, key=len, default=None)
