"""One-batch: SGLang's benchmark path without a server, one row for each variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rvvbench.manifest.models import CacheState, OneBatch, Variant
from rvvbench.manifest.operators import expected_ops
from rvvbench.manifest.regional import Artifact
from rvvbench.manifest.resolve import Resolved
from rvvbench.manifest.routing import artifacts_of, predicted_routes
from rvvbench.record.build import build_row
from rvvbench.record.schema import Expected, Heading, Row
from rvvbench.target.select import Target
from rvvbench.workload.follow import Say
from rvvbench.workload.job import Measured
from rvvbench.workload.spec import (
    Identity,
    Pins,
    declared_server_args,
    expected_of_process,
    heading_of,
    process_spec,
    seeded_prompts,
)


@dataclass(frozen=True)
class Prompts:
    """Token ids of the measured batch and of the warm-up batch: [batch, input_len] each, no sequence in common."""

    measured: list[list[int]]
    warmup: list[list[int]]


@dataclass(frozen=True)
class OneBatchJob:
    """The steps of a one-batch run that its manifest decides."""

    resolved: Resolved
    target: Target
    pins: Pins
    workload: OneBatch

    def heading(self) -> Heading:
        """What every table of the record says above itself."""
        return heading_of(self.resolved, batch_size=self.workload.batch_size)

    def prompts(self) -> Prompts:
        """The seeded prompts: indices 0..batch-1 are measured, the next batch is the warm-up."""
        size = self.workload.batch_size
        return Prompts(seeded_prompts(self.resolved, 0, size), seeded_prompts(self.resolved, size, size))

    def expected(self, variant: Variant) -> Expected:
        """What every process of the row of `variant` must show."""
        config = self.resolved.model.config
        routes = predicted_routes(config, variant, self.workload)
        return Expected(
            **expected_of_process(self.resolved, self.target, variant, self.pins, routes),
            batch_size=self.workload.batch_size,
            ops=expected_ops(config, variant, self.workload),
            # The runner lets a variant's own come last; here they come first, so that a variant that overrules what
            # the record's heading says makes an invalid row and not a false heading.
            server_args={**variant.server_args, **declared_server_args(self.resolved, variant)},
        )

    def spec(self, variant: Variant, identity: Identity) -> dict[str, Any]:
        """The spec of one fresh process, as JSON data."""
        prompts = self.prompts()
        return {
            **process_spec("one-batch", self.resolved, self.target, variant, self.pins, identity),
            "batch_size": self.workload.batch_size,
            "input_ids": prompts.measured,
            "warmup_input_ids": prompts.warmup,
        }

    def artifacts(self, variant: Variant) -> tuple[Artifact, ...]:
        """The compiled artifacts that the passes take."""
        config = self.resolved.model.config
        return artifacts_of(config, variant, predicted_routes(config, variant, self.workload))

    def rows(self, variant: Variant, processes: Sequence[Measured], state: CacheState = "none") -> list[Row]:
        """The one row of `variant`."""
        return [
            build_row(
                variant=variant.name,
                cache_state=state,
                expected=self.expected(variant),
                processes=[one.ran() for one in processes],
            )
        ]

    def teller(self) -> _Story:
        """Says what the process does."""
        return _Story(self.workload.output_len)


@dataclass(frozen=True)
class _Story:
    output_len: int

    def __call__(self, event: Mapping[str, Any]) -> Say | None:
        match event.get("event"):
            case "process_start":
                return Say("starting: importing PyTorch and SGLang")
            case "model_loaded":
                return Say(f"model loaded in {event.get('seconds', 0.0):.1f} s; warming up")
            case "warmup":
                return Say(f"warmed up in {event.get('seconds', 0.0):.1f} s")
            case "measured_start":
                return Say("measuring: prefill")
            case "pass":
                return Say(f"measuring: token {event.get('step', 0) + 1} of {self.output_len}")
            case "error":
                return Say(f"failed: {event.get('message', '')}", stays=True)
            case _:
                return None
