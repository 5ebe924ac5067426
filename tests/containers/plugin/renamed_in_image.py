"""Functions of SGLang that are not there any more: start-up must name each. A process of its own for every one, forked
before the plugin's hooks are installed.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
import traceback
from collections.abc import Callable

from checks_in_image import MARK, leave_out_models

RUNNER = "sglang.srt.model_executor.model_runner"

AT_START = (
    "sglang.srt.layers.logits_processor.LogitsProcessor._compute_lm_head",
    "sglang.srt.utils.common.support_triton",
)
"""Hooked while ModelRunner's module is being imported; `get_model_loader` is missed by that import itself."""

AT_LOADING = (
    f"{RUNNER}.ModelRunner.configure_kv_cache_dtype",
    "sglang.srt.model_executor.pool_configurator.DefaultPoolConfigurator._compute_cell_size",
    *(f"{RUNNER}.ModelRunner.update_weights_from_{source}" for source in ("disk", "distributed", "tensor", "ipc")),
)
"""Hooked before a model is loaded."""


def remove(target: str) -> None:
    owner, _, name = target.rpartition(".")
    delattr(pkgutil.resolve_name(owner), name)


def told(problem: str | None, check: str) -> None:
    print(f"\n{MARK}{json.dumps({'check': check, 'seconds': 0.0, 'problem': problem})}", flush=True)


def in_a_child(name: str, body: Callable[[], None]) -> None:
    """Run `body` in a fork and tell how it went."""
    child = os.fork()
    if child == 0:
        try:
            body()
            problem = None
        except BaseException:
            problem = traceback.format_exc()
        told(problem, f"renamed.{name}")
        os._exit(0)
    os.waitpid(child, 0)


def refused(target: str, call: Callable[[], object]) -> None:
    """`call` fails for want of `target`, and says so."""
    try:
        call()
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        assert type(error).__name__ == "IntegrationError" and target in text and "0.5.15" in text, text
    else:
        raise AssertionError(f"nothing missed {target}")


def at_start(target: str) -> None:
    remove(target)
    refused(target, lambda: importlib.import_module(RUNNER))


def at_loading(target: str) -> None:
    from one_batch import OneBatch

    remove(target)
    refused(target, lambda: OneBatch(os.environ["CHECKS_MODEL"], attention_backend="rvv"))


def past_the_loader() -> None:
    """A model that no hooked loader loaded gets no memory pool."""
    from sglang.srt.platforms import current_platform

    refused("get_model_loader", current_platform.get_mha_kv_pool_cls)


def amx_is_believed_in() -> None:
    import sglang.srt.utils.common as common

    common.is_intel_amx_backend_available = True
    refused("is_intel_amx_backend_available", lambda: importlib.import_module(RUNNER))


def main() -> None:
    leave_out_models()
    import sglang.srt.layers.logits_processor
    import sglang.srt.model_executor.pool_configurator
    import sglang.srt.model_loader.loader  # noqa: F401

    assert RUNNER not in sys.modules, "the plugin's hooks are installed already"
    for target in AT_START:
        in_a_child(target, lambda target=target: at_start(target))  # type: ignore[misc]
    in_a_child("amx", amx_is_believed_in)
    importlib.import_module("sglang.benchmark.one_batch")
    for target in AT_LOADING:
        in_a_child(target, lambda target=target: at_loading(target))  # type: ignore[misc]
    in_a_child("loader", past_the_loader)


if __name__ == "__main__":
    main()
