"""What a server says of itself: SGLang's `/server_info`, held against what it was given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .failure import ServingFailed
from .http_get import get

_ABSENT = object()


@dataclass(frozen=True)
class Ran:
    """What the scheduler counted since it started (`sglang_rvv.scheduler_state.what_ran`).

    `compiled`: the report of its compiled regions, None where there are none.
    """

    pid: int
    platform_class: str
    torch_threads: int
    library_sha256: str | None
    ops: Mapping[str, Any]
    routing: list[Any]
    compiled: Mapping[str, Any] | None = None

    def event_fields(self) -> dict[str, Any]:
        """The fields of an `attestation` event; `graphs` where the scheduler compiles."""
        graphs = {} if self.compiled is None else {"graphs": self.compiled.get("graphs")}
        return {"library_sha256": self.library_sha256, "ops": self.ops, "routing": self.routing, **graphs}


async def fetch(host: str, port: int, limit_s: float) -> dict[str, Any]:
    """The document. Raises ServingFailed when none comes."""
    try:
        async with asyncio.timeout(limit_s):
            status, body = await get(host, port, "/server_info")
        document = json.loads(body)
    except TimeoutError as error:
        raise ServingFailed("request-timeout", f"/server_info did not answer within {limit_s:g} s") from error
    except (OSError, ValueError) as error:
        raise ServingFailed("request-failed", f"/server_info: {error}") from error
    if status != 200 or not isinstance(document, dict):
        raise ServingFailed("request-failed", f"/server_info answered {status}: {body[:300]!r}")
    return document


def ran(info: Mapping[str, Any]) -> Ran:
    """The counters in a document. Raises ServingFailed where the plugin's hook did not add them."""
    try:
        told = info["internal_states"][0]["rvv"]
        return Ran(
            pid=int(told["pid"]),
            platform_class=str(told["platform_class"]),
            torch_threads=int(told["torch_threads"]),
            library_sha256=told["library_sha256"],
            ops=dict(told["ops"]),
            routing=list(told["routing"]),
            compiled=told.get("compiled"),
        )
    except (KeyError, IndexError, TypeError, ValueError) as error:
        said = f"/server_info tells nothing of what ran (internal_states[0].rvv): {type(error).__name__} {error}"
        raise ServingFailed("runner", f"{said}; is sglang_rvv on the server's site path?") from error


def check(given: Mapping[str, Any], info: Mapping[str, Any]) -> None:
    """Raise ServingFailed that names every field of `info` which is not what was given."""
    different = list(differences(given, info))
    if different:
        raise ServingFailed("server-args", "the server does not run with what it was given: " + "; ".join(different))


def differences(given: Mapping[str, Any], info: Mapping[str, Any]) -> Iterator[str]:
    """One text for each field that differs as a JSON value: 1 and 1.0 are one number, 1 and true are two things."""
    for field, value in given.items():
        told = info.get(field, _ABSENT)
        if told is _ABSENT:
            yield f"{field}: given {json.dumps(value)}, /server_info does not have it"
        elif not same(value, told):
            yield f"{field}: given {json.dumps(value)}, it says {json.dumps(told)}"


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    return bool(one == other)
