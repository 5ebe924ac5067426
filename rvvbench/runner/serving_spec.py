"""The spec of a serving run (`rvvbench/spec/1`, kind "serving"): one fresh server, and the loads that it serves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import spec as specs
from .arrivals import Arrivals
from .exchange import Asked, Request
from .failure import SpecError

READY = "ready"


@dataclass(frozen=True)
class Load:
    """Requests of one kind. Closed: `concurrency` of them in flight; open: sent by `arrivals`; the other is None."""

    name: str
    measured: bool
    concurrency: int | None
    arrivals: Arrivals | None
    requests: tuple[Asked, ...]


@dataclass(frozen=True)
class Limits:
    """Seconds. `startup`: from the spawn to the first answer over HTTP; `compile`: from there to the first generation,
    and each warm-up load; `request`: each measured request; `shutdown`: from SIGTERM to SIGKILL.
    """

    startup_s: float
    compile_s: float
    request_s: float
    shutdown_s: float


@dataclass(frozen=True)
class CrossCheck:
    """How SGLang's own serving benchmark is asked to measure the same server."""

    requests: int
    concurrency: int
    input_len: int
    output_len: int
    seed: int


@dataclass(frozen=True)
class ServingSpec(specs.Common):
    """One server. `server_args` are all fields of SGLang's ServerArgs that it is given, but host and port; `port` None:
    a free one. `ready` is the request of the first generation, None where it is made from the loads.
    """

    server_args: Mapping[str, Any]
    port: int | None
    loads: tuple[Load, ...]
    limits: Limits
    cross_check: CrossCheck | None
    ready: Asked | None = None

    @property
    def out(self) -> Path:
        """The folder for logs."""
        return Path(self.events_path).parent


def load(path: str) -> ServingSpec:
    """Read a spec file. Raises SpecError when it cannot be read or is not what docs/architecture.md says."""
    return specs.read(path, parse)


def parse(document: Mapping[str, Any]) -> ServingSpec:
    """A ServingSpec from its JSON document. Raises SpecError (meaning), KeyError, TypeError or ValueError (form)."""
    check = document.get("cross_check")
    common = specs.common(document)
    spec = ServingSpec(
        **common,
        **of_the_server(document),
        loads=tuple(_load(one, common["output_len"]) for one in document["loads"]),
        cross_check=None
        if check is None
        else CrossCheck(*(int(check[name]) for name in ("requests", "concurrency", "input_len", "output_len", "seed"))),
    )
    return checked(spec, "serving")


def of_the_server(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that do not depend on what the server is asked. Raises as `parse`."""
    limits = document["timeouts_s"]
    return {
        "server_args": dict(document["server_args"]),
        "port": None if document["port"] is None else int(document["port"]),
        "limits": Limits(*(float(limits[name]) for name in ("startup", "compile", "request", "shutdown"))),
    }


def checked(spec: ServingSpec, kind: str) -> ServingSpec:
    """The spec. Raises SpecError where this runner cannot do what it says."""
    problems = [*specs.problems_of(spec, kind), *_problems(spec)]
    if problems:
        raise SpecError("; ".join(problems))
    return spec


def readiness(spec: ServingSpec) -> Asked:
    """The request of the first generation. Raises SpecError."""
    return spec.ready or Request(READY, readiness_prompt(spec.loads), spec.output_len)


def readiness_prompt(loads: tuple[Load, ...]) -> tuple[int, ...]:
    """A prompt of the full shape that no load has: the first one, turned until it is another. Raises SpecError."""
    taken = {request.prompt for one in loads for request in one.requests}
    asked = loads[0].requests[0]
    first = asked.prompt if isinstance(asked, Request) else ()
    for turn in range(1, len(first)):
        turned = first[turn:] + first[:turn]
        if turned not in taken:
            return turned
    raise SpecError("no prompt is left for the readiness check: the first one has only one kind of token")


def _load(document: Mapping[str, Any], output_len: int) -> Load:
    mode, arrivals = document["mode"], None
    if mode not in ("closed", "open"):
        raise SpecError(f"load {document['name']}: mode {mode!r} is not one of closed, open")
    if mode == "open":
        arrivals = Arrivals(document["arrivals"], float(document["rate_per_s"]), int(document["seed"] or 0))
    return Load(
        name=str(document["name"]),
        measured=bool(document["measured"]),
        concurrency=int(document["concurrency"]) if mode == "closed" else None,
        arrivals=arrivals,
        requests=tuple(
            Request(str(one["id"]), specs.prompt(one["input_ids"]), output_len) for one in document["requests"]
        ),
    )


def _problems(spec: ServingSpec) -> Iterator[str]:
    names = [one.name for one in spec.loads]
    if not names or len({*names, READY}) != len(names) + 1:
        yield f"loads need names of their own, other than {READY}: {', '.join(names) or 'there are none'}"
    ids = [request.id for one in spec.loads for request in one.requests]
    if len(set(ids)) != len(ids):
        yield "two requests have the same id"
    prompts = [request.prompt for one in spec.loads for request in one.requests]
    prompts += [] if spec.ready is None else [spec.ready.prompt]
    if len(set(prompts)) != len(prompts):
        yield "two requests have the same prompt: a result would be measured, not its computation"
    if not all(prompts):
        yield "a request has no tokens"
    for one in spec.loads:
        if not one.requests or (one.concurrency is not None and one.concurrency < 1):
            yield f"load {one.name} has {len(one.requests)} requests at concurrency {one.concurrency}"
    if {"host", "port"} & set(spec.server_args):
        yield "server_args may name neither host nor port: the runner chooses them"
    limits = spec.limits
    if min(limits.startup_s, limits.compile_s, limits.request_s, limits.shutdown_s) <= 0:
        yield "timeouts_s must be positive"
    if spec.cross_check is not None and spec.server_args.get("skip_tokenizer_init"):
        yield "cross_check needs a server with a tokenizer: it times the first chunk that has text"
