"""The one canonical form of JSON that is hashed, and the identity of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical_json(value: Any) -> str:
    """`value` (plain JSON data) as the one text that equal values share.

    Keys sorted by code point, no white space, non-ASCII kept as is, numbers as Python's shortest round-trip form.

    Raises: ValueError for NaN, infinities (JSON has no such numbers) and half a surrogate pair (UTF-8 has no such
    text), TypeError for what is not JSON data or for a key that is not a string, which `json` would turn into one
    silently.
    """
    _refuse_other_keys(value)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: Any) -> str:
    """sha256 (64 hex digits) over the UTF-8 of `canonical_json(value)`."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def identity(manifest: Mapping[str, Any], pins: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """sha256 (64 hex digits) of everything declared that can change a number.

    `manifest`: the resolved manifest as plain JSON. `pins`: the resolved pins. `environment`: the allow-listed
    variables that the processes were given. Two runs are the same experiment exactly when their identities are equal.
    """
    return digest({"environment": dict(environment), "manifest": dict(manifest), "pins": dict(pins)})


def _refuse_other_keys(value: Any) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"a key of JSON data is a string, not {key!r}")
            _refuse_other_keys(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_other_keys(item)
