"""What a scheduler has run, in SGLang's own answer to `/server_info`.

A server runs the model in schedulers that SGLang spawns; the only door from outside to what they counted is the
internal state that each of them tells (`internal_states[i]` of `/server_info`). A hook adds the field `rvv` to it. It
enters through the entry point group `sglang.srt.plugins`, which SGLang 0.5.15 loads in the main process and in every
scheduler before it makes one, but not in its benchmarks.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from sglang_rvv import routing, startup
from sglang_rvv.regional import compiled
from sglang_rvv.upstream import IntegrationError

GET_INTERNAL_STATE = "sglang.srt.managers.scheduler.Scheduler.get_internal_state"
FIELD = "rvv"


def register() -> None:
    """The entry point. SGLang applies the hook right after it, and only logs what fails: see `check`."""
    # Imported whole before the hook is known: importing it also applies the hooks of `hooks.install`, half way through.
    import sglang.srt.managers.scheduler  # noqa: F401
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    from sglang_rvv import hooks

    hooks.install_arguments()

    HookRegistry.register(GET_INTERNAL_STATE, add_what_ran, HookType.AFTER)


def check() -> None:
    """Raise IntegrationError if SGLang has loaded its plugins in this process and the hook does not hold."""
    plugins = sys.modules.get("sglang.srt.plugins")
    if plugins is None or not plugins._plugins_loaded:
        return  # a benchmark without a server
    scheduler = getattr(sys.modules.get("sglang.srt.managers.scheduler"), "Scheduler", None)
    if not hasattr(getattr(scheduler, "get_internal_state", None), "__wrapped__"):
        raise IntegrationError(
            "the hook did not take hold: nobody could tell which kernels a server ran",
            upstream=GET_INTERNAL_STATE,
            mend="install sglang_rvv with its entry points, and name rvv in SGLANG_PLUGINS where that is set",
        )


def add_what_ran(result: Any, *args: Any, **kwargs: Any) -> Any:
    """After `get_internal_state`: the state of the same answer also tells what ran."""
    result.internal_state[FIELD] = what_ran()
    return result


def what_ran() -> dict[str, Any]:
    """Plain data about this process, counted since it started: `pid`, `platform_class`, `torch_threads`,
    `library_sha256` (None without kernels), `ops` (as `sgl_kernel.attestation`), `routing`, and `active`: what the
    start-up line says, and the linears that are packed and those that were left row-major, with their bytes. Where
    regions are compiled, `compiled`: their report (`sglang_rvv.regional.report`).
    """
    import torch
    from sglang.srt.platforms import current_platform

    kernels = sys.modules.get("sgl_kernel")  # loaded at start-up, or not used
    proven = {"library_sha256": None, "ops": {}} if kernels is None else kernels.attestation()
    cls = type(current_platform)
    what_compiled = {"compiled": compiled.report()} if compiled.is_on() else {}
    return {
        "pid": os.getpid(),
        "platform_class": f"{cls.__module__}.{cls.__qualname__}",
        "torch_threads": torch.get_num_threads(),
        "library_sha256": proven["library_sha256"],
        "ops": proven["ops"],
        "routing": routing.snapshot(),
        "active": startup.report(),
        **what_compiled,
    }
