"""Serving: a fresh server for each variant and repetition, asked at every load in turn; a row for each load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from rvvbench.manifest.loads import Load, loads
from rvvbench.manifest.models import CacheState, Serving, Variant
from rvvbench.manifest.operators import allowed_ops
from rvvbench.manifest.regional import MOST_ROWS, SMALL_BUCKETS, Artifact
from rvvbench.manifest.resolve import Resolved
from rvvbench.manifest.routing import allowed_routes, artifacts_of
from rvvbench.manifest.shapes import layers_of
from rvvbench.record.build import build_row
from rvvbench.record.request_figures import decode_rate, e2e_s, ttft_s
from rvvbench.record.request_timeline import requests as timelines
from rvvbench.record.schema import Expected, ExpectedLoad, Heading, Row
from rvvbench.record.timeline import NotMeasuredError
from rvvbench.target.select import Target
from rvvbench.workload.follow import Say
from rvvbench.workload.job import Measured
from rvvbench.workload.spec import (
    POOL_TOKENS,
    Identity,
    Pins,
    declared_server_args,
    expected_of_process,
    heading_of,
    process_spec,
    seeded_prompts,
)

SHUTDOWN_S = 60.0
"""After SIGTERM, before SIGKILL. A server under emulation takes about 20 s to end."""

PREFILL_TOKENS = 16384
"""SGLang's default of `max_prefill_tokens` (0.5.15)."""

COMPILING_PROMPTS = 1_000_000
"""Index of the first prompt of loads that are there to have artifacts compiled: beyond those of all measured loads."""


@dataclass(frozen=True)
class ServingJob:
    """The steps of a serving run that its manifest decides."""

    resolved: Resolved
    target: Target
    pins: Pins
    workload: Serving

    def heading(self) -> Heading:
        """What every table of the record says above itself."""
        return heading_of(self.resolved, workload="serving", batch_size=1, requests=self.workload.requests)

    def expected(self, variant: Variant, load: Load) -> Expected:
        """What every server must show for the row of `variant` at `load`."""
        config = self.resolved.model.config
        layers = layers_of(config)
        routes = allowed_routes(config, variant, self.workload, load.in_flight)
        return Expected(
            **expected_of_process(self.resolved, self.target, variant, self.pins, routes),
            batch_size=1,
            ops=allowed_ops(config, variant, self.workload),
            server_args=self.server_args(variant),
            load=ExpectedLoad(
                name=load.name,
                mode=load.mode,
                concurrency=load.concurrency,
                arrivals=load.arrivals,
                rate_per_s=load.rate_per_s,
                seed=load.seed,
                requests=load.requests,
                layers=layers.count,
                qk_norm_heads=(layers.heads, layers.kv_heads) if layers.qk_norms else (),
            ),
        )

    def server_args(self, variant: Variant) -> dict[str, Any]:
        """Everything that the server is given, but the address: fields of SGLang's ServerArgs.

        Prefill is not cut into chunks, so that the row counts of its passes follow from the prompts. The KV pool is
        sized by `max_total_tokens` alone: SGLang's own choice of `mem_fraction_static` depends on the machine's memory,
        and is below 0 where there is little.
        """
        workload = self.workload
        needed = workload.most_in_flight * (workload.input_len + workload.output_len)
        return {
            "max_total_tokens": max(POOL_TOKENS, 2 * needed),
            "max_running_requests": workload.most_in_flight,
            "mem_fraction_static": 0.9,
            "chunked_prefill_size": -1,
            "max_prefill_tokens": max(PREFILL_TOKENS, workload.most_in_flight * workload.input_len),
            "grammar_backend": "none",
            "random_seed": 0,
            "watchdog_timeout": self.resolved.experiment.timeouts_s.process,
            **variant.server_args,
            **workload.server.model_dump(),
            **declared_server_args(self.resolved, variant),
        }

    def spec(self, variant: Variant, identity: Identity) -> dict[str, Any]:
        """The spec of one fresh server and its loads, as JSON data."""
        cross_check = self.workload.cross_check
        return {
            **self.server_spec("serving", variant, identity),
            "loads": self._loads(variant),
            "cross_check": None
            if cross_check is None
            else {
                "requests": cross_check.requests,
                "concurrency": cross_check.concurrency,
                "input_len": self.workload.input_len,
                "output_len": self.workload.output_len,
                "seed": self.workload.seed,
            },
        }

    def server_spec(self, kind: str, variant: Variant, identity: Identity) -> dict[str, Any]:
        """The fields of a spec that are of the server, whatever it is asked."""
        limits = self.resolved.experiment.timeouts_s
        return {
            **process_spec(kind, self.resolved, self.target, variant, self.pins, identity),
            "server_args": self.server_args(variant),
            "port": None,
            "timeouts_s": {
                "startup": limits.startup,
                "compile": limits.compile,
                "request": limits.request,
                "shutdown": SHUTDOWN_S,
            },
        }

    def artifacts(self, variant: Variant) -> tuple[Artifact, ...]:
        """The compiled artifacts that the requests of any load may take."""
        config, workload = self.resolved.model.config, self.workload
        return artifacts_of(config, variant, allowed_routes(config, variant, workload, workload.most_in_flight))

    def rows(self, variant: Variant, processes: Sequence[Measured], state: CacheState = "none") -> list[Row]:
        """A row for each load, all from the same servers."""
        return [
            build_row(
                variant=variant.name,
                cache_state=state,
                concurrency=load.concurrency,
                rate_per_s=load.rate_per_s,
                expected=self.expected(variant, load),
                processes=[one.ran(load.name) for one in processes],
            )
            for load in loads(self.workload)
        ]

    def teller(self) -> Story:
        """Says what the server and its requests do."""
        return Story(self.workload.requests, self.workload.output_len)

    def _loads(self, variant: Variant) -> list[dict[str, Any]]:
        """Before each load a warm-up with as many requests as it has in flight. No prompt occurs twice in a run, and
        the measured ones are the same for every variant.
        """
        described = []
        used, compiling = 0, _Prompts(self.resolved, COMPILING_PROMPTS)
        for load in loads(self.workload):
            described += self._compiling_loads(load, compiling) if variant.compiles else []
            for measured in (False, True):
                count = load.requests if measured else load.in_flight
                name = load.name if measured else f"{load.name}-warmup"
                prompts = seeded_prompts(self.resolved, used, count)
                used += count
                one = _unmeasured(name, load.in_flight, prompts)
                of_its_own = {
                    "measured": True,
                    "mode": load.mode,
                    "concurrency": load.concurrency,
                    "arrivals": load.arrivals,
                    "rate_per_s": load.rate_per_s,
                    "seed": load.seed,
                }
                described.append(one | (of_its_own if measured else {}))
        return described

    def _compiling_loads(self, load: Load, prompts: _Prompts) -> list[dict[str, Any]]:
        """Of a server that compiles what it meets: loads that bring the rows which the requests of `load` may bring
        together and its warm-up need not, so that nothing is compiled while it is measured.

        A prompt of k lengths has the rows of k prompts in one prefill; b requests at once decode b rows.
        """
        several = [k for k in range(2, load.in_flight + 1) if k * self.workload.input_len <= MOST_ROWS]
        found = []
        if several:
            long = [[token for prompt in prompts.take(k) for token in prompt] for k in several]
            found.append(_unmeasured(f"{load.name}-rows", 1, long))
        for together in (bucket for bucket in SMALL_BUCKETS[1:] if bucket < load.in_flight):
            found.append(_unmeasured(f"{load.name}-together{together}", together, prompts.take(together)))
        return found


@dataclass
class _Prompts:
    """The seeded prompts from number `first` on, each taken once."""

    resolved: Resolved
    first: int

    def take(self, count: int) -> list[list[int]]:
        taken = seeded_prompts(self.resolved, self.first, count)
        self.first += count
        return taken


def _unmeasured(name: str, concurrency: int, prompts: Sequence[Sequence[int]]) -> dict[str, Any]:
    """A closed loop of these prompts, described for the runner."""
    return {
        "name": name,
        "measured": False,
        "mode": "closed",
        "concurrency": concurrency,
        "arrivals": None,
        "rate_per_s": None,
        "seed": None,
        "requests": [{"id": f"{name}-{index}", "input_ids": ids} for index, ids in enumerate(prompts)],
    }


@dataclass
class Story:
    """Tells a person of the server's start, and of every measured request when it has ended: by the definitions of the
    table, so that both say the same.
    """

    requests: int
    output_len: int
    _measuring: bool = False
    _ended: int = 0
    _asked: dict[str, _Asked] = field(default_factory=dict)

    def __call__(self, event: Mapping[str, Any]) -> Say | None:
        match event.get("event"):
            case "process_start":
                return Say("server: importing PyTorch and SGLang, loading the model")
            case "server_listening":
                return Say(f"server answers after {event.get('seconds', 0.0):.1f} s; waiting for a first generation")
            case "server_ready":
                return Say(f"server ready after {event.get('seconds', 0.0):.1f} s", stays=True)
            case "load_start":
                return self._started(event)
            case "request_start" | "request_sent" | "chunk" | "request_end":
                return self._of_a_request(event)
            case "request_error":
                return Say(f"{event.get('request')}: failed: {event.get('message')}", stays=True)
            case "cross_check":
                return Say(
                    f"cross-check with SGLang's own benchmark took {event.get('seconds', 0.0):.0f} s", stays=True
                )
            case "error":
                return Say(f"failed: {event.get('message', '')}", stays=True)
        return None

    def _started(self, event: Mapping[str, Any]) -> Say:
        self._measuring, self._ended = event.get("measured") is True, 0
        return Say(f"{'measuring ' if self._measuring else ''}{event.get('load')}: {event.get('requests')} requests")

    def _of_a_request(self, event: Mapping[str, Any]) -> Say | None:
        name = str(event.get("request"))
        asked = self._asked.setdefault(name, _Asked())
        asked.events.append(event)
        if event.get("event") == "request_end":
            del self._asked[name]
            return self._ended_well(asked) if self._measuring else None
        if not event.get("token_ids"):
            return None
        asked.tokens += len(event["token_ids"])
        return Say(f"{name}: token {asked.tokens} of {self.output_len}")

    def _ended_well(self, asked: _Asked) -> Say | None:
        for request in timelines(asked.events):
            try:
                text = f"{request.id}: TTFT {ttft_s(request):.3f} s, {request.tokens} tokens in {e2e_s(request):.3f} s"
            except NotMeasuredError:
                return None
            with suppress(NotMeasuredError):  # all tokens came at once
                text += f", then {decode_rate(request):.2f} tok/s"
            self._ended += 1
            return Say(f"{text} ({self._ended} of {self.requests})", stays=True)
        return None


@dataclass
class _Asked:
    """A request that is in flight: its events so far, and the tokens in them."""

    events: list[Mapping[str, Any]] = field(default_factory=list)
    tokens: int = 0
