"""The measured process of a one-batch run: pins, load, warm-up, measured pass, attestation; events all along."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import attestation, environment, hardware, memory, pins, sglang_batch
from .events import Events
from .failure import RunnerError
from .spec import Spec
from .tokens import Pass, scores

ROLE = "one_batch"
# Recorded in full beside the pinned packages.
OF_INTEREST = ("numpy", "sglang_rvv", "sgl_kernel")


def main(spec: Spec) -> int:
    """Run, and return the exit code. Whatever fails becomes an `error` event."""
    signal.signal(signal.SIGTERM, _raise_terminated)
    with Events(spec.events_path) as events:
        events.write("process_start", unix_s=time.time())
        try:
            measure(spec, events)
        except BaseException as error:
            events.write("error", type=type(error).__name__, message=str(error), traceback=traceback.format_exc())
            if isinstance(error, RunnerError):
                return error.exit_code
            raise
    return 0


class Terminated(BaseException):
    """SIGTERM arrived."""


def _raise_terminated(number: int, frame: object) -> None:
    raise Terminated(f"signal {number}")


def measure(spec: Spec, events: Events) -> None:
    """The whole run of one process. Raises PinFailed before anything is measured."""
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
    batch.run(spec.warmup_input_ids, spec.output_len, [])
    events.write("warmup", seconds=time.monotonic() - start)
    attestation.reset(kernels)
    measured_pass(spec, batch, events)
    proven = attestation.fields(kernels)
    events.write("memory", **memory.own_event("measured", ROLE, is_emulated=is_emulated))
    events.write("attestation", **proven)


def environment_fields(spec: Spec, found: hardware.Hardware, platform: str) -> dict[str, Any]:
    """The fields of the `environment` event, read after the model is loaded: SGLang sets variables and threads of its
    own.
    """
    import torch

    fields: dict[str, Any] = {
        "packages": {pin.name.partition(":")[2]: pin.observed for pin in pins.packages(spec.expect.packages)},
        "full_versions": {name: pins.package_version(name) for name in (*spec.expect.packages, *OF_INTEREST)},
        "torch_threads": torch.get_num_threads(),
        "platform_class": platform,
        "vlen_bits": found.vlen_bits,
        "isa": found.isa,
        "isa_source": found.isa_source,
        "env": environment.recorded(os.environ),
        "server_args": sglang_batch.server_arguments(spec),
    }
    return fields if found.vlen_reason is None else {**fields, "vlen_reason": found.vlen_reason}


def measured_pass(spec: Spec, batch: sglang_batch.Batch, events: Events) -> None:
    """Run the measured prompts; scores and token events come after the clock has stopped, each with the time that it
    is of.
    """
    passes: list[Pass] = []
    with told(passes, spec, events):
        events.write("measured_start")
        batch.run(spec.input_ids, spec.output_len, passes)


@contextmanager
def told(passes: list[Pass], spec: Spec, events: Events) -> Iterator[None]:
    """Write the events of all passes at the end, however it comes; `measured_end` only after a whole run."""
    try:
        yield
    except BaseException:
        write_passes(passes, spec, events)
        raise
    end_ns = time.monotonic_ns()
    write_passes(passes, spec, events)
    events.write("measured_end", t_ns=end_ns)


def write_passes(passes: list[Pass], spec: Spec, events: Events) -> None:
    """One `prefill` and one `decode` for each further pass."""
    for step, one in enumerate(passes):
        fields = {"start_ns": one.start_ns, "end_ns": one.end_ns, "token_ids": one.token_ids, **scores(one)}
        if step == 0:
            events.write("prefill", t_ns=one.end_ns, input_tokens=spec.input_tokens, **fields)
        else:
            events.write("decode", t_ns=one.end_ns, step=step, **fields)
