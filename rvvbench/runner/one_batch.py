"""The measured process of a one-batch run: pins, load, warm-up, measured pass, attestation; events all along."""

from __future__ import annotations

import os
import signal
import time
import traceback
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from . import attestation, compiled, environment, hardware, memory, pins, sglang_batch
from .events import Events
from .failure import RunnerError
from .spec import Spec
from .tokens import Pass, scores

ROLE = "one_batch"


@dataclass(frozen=True)
class Run:
    """One run under way. `passes` grows in the measured pass and is told at its end, however that comes."""

    spec: Spec
    events: Events
    passes: list[Pass] = field(default_factory=list)

    def keep(self, one: Pass) -> None:
        """Keep a pass for scoring, and have its times and tokens on disk at once: a kill must not lose them."""
        step = len(self.passes)
        self.passes.append(one)
        times = {"start_ns": one.start_ns, "end_ns": one.end_ns}
        self.events.write("pass", t_ns=one.end_ns, step=step, **times, token_ids=one.token_ids)


def main(spec: Spec) -> int:
    """Run, and return the exit code. Whatever fails becomes an `error` event."""
    with Events(spec.events_path) as events:
        events.write("process_start", unix_s=time.time())
        run = Run(spec, events)
        end_on_signals(run)
        try:
            measure(run)
        except BaseException as error:
            tell_passes(run)
            events.write("error", type=type(error).__name__, message=str(error), traceback=traceback.format_exc())
            if isinstance(error, RunnerError):
                return error.exit_code
            raise
    return 0


def end_on_signals(run: Run) -> None:
    """On SIGTERM and SIGINT tell what there is and end. Not by an exception: SGLang's bare excepts would eat it."""

    def end(number: int, frame: FrameType | None) -> None:
        tell_passes(run)
        where = "".join(traceback.format_stack(frame))
        run.events.write("error", type="Terminated", message=signal.Signals(number).name, traceback=where)
        os._exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)


def measure(run: Run) -> None:
    """The whole run of one process. Raises PinFailed before anything is measured."""
    spec, events = run.spec, run.events
    is_emulated = memory.emulated(os.getppid())
    environment.apply(spec)
    found = hardware.probe()
    pins.check(pins.before_import(spec, found.vlen_bits), events)
    import torch

    platform = sglang_batch.platform_class()
    pins.check(iter([pins.equal("torch_threads", spec.threads, torch.get_num_threads())]), events)
    start = time.monotonic()
    batch = sglang_batch.load(spec)
    load_s = time.monotonic() - start
    kernels = attestation.loaded_kernels(spec)
    events.write("environment", **environment_fields(spec, found, platform))
    events.write("model_loaded", seconds=load_s, weight_bytes=batch.weight_bytes())
    events.write("memory", **memory.own_event("loaded", ROLE, is_emulated=is_emulated))
    start = time.monotonic()
    batch.run(spec.warmup_input_ids, spec.output_len, lambda _: None)
    events.write("warmup", seconds=time.monotonic() - start)
    graphs_before = compiled.graphs(compiled.report(spec))
    attestation.reset(kernels)
    events.write("measured_start")
    batch.run(spec.input_ids, spec.output_len, run.keep)
    end_ns = time.monotonic_ns()
    proven = attestation.fields(kernels)
    events.write("memory", **memory.own_event("measured", ROLE, is_emulated=is_emulated))
    tell_passes(run)
    events.write("measured_end", t_ns=end_ns)
    events.write("attestation", **proven)
    told = compiled.report(spec)
    if told is not None:
        events.write("compiled", **compiled.fields(told, graphs_before))


def tell_passes(run: Run) -> None:
    """Write the passes so far, one `prefill` and a `decode` for each further one, each with the time that it ended.

    After the clock has stopped: scoring 128 thousand logits between two passes would count as decoding.
    """
    passes = list(run.passes)
    run.passes.clear()
    for step, one in enumerate(passes):
        fields = {"start_ns": one.start_ns, "end_ns": one.end_ns, "token_ids": one.token_ids, **scores(one)}
        if step == 0:
            run.events.write("prefill", t_ns=one.end_ns, input_tokens=run.spec.input_tokens, **fields)
        else:
            run.events.write("decode", t_ns=one.end_ns, step=step, **fields)


def environment_fields(spec: Spec, found: hardware.Hardware, platform: str) -> dict[str, Any]:
    """The fields of the `environment` event, read after the model is loaded: SGLang sets variables and threads of its
    own.
    """
    import torch

    return environment.fields(
        spec,
        found,
        environ=os.environ,
        torch_threads=torch.get_num_threads(),
        platform_class=platform,
        server_args=sglang_batch.server_arguments(spec),
    )
