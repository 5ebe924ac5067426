"""The two functions of SGLang that we hook, through its own registry, and the proof that the hooks took hold.

Installed from `RvvPlatform.init_backend`, which SGLang calls while `model_runner` is half imported, in every process
that will run a model: the benchmark, which never loads general plugins, as well as each scheduler of a server.
`ModelRunner` does not exist yet at that point; `get_model_loader` does, already bound in the half-imported module,
and what it returns loads the model before memory pools are sized, so that packed weights are accounted for.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from sglang_rvv.settings import Settings
from sglang_rvv.upstream import IntegrationError

GET_MODEL_LOADER = "sglang.srt.model_loader.loader.get_model_loader"
COMPUTE_LM_HEAD = "sglang.srt.layers.logits_processor.LogitsProcessor._compute_lm_head"
MODEL_RUNNER = "sglang.srt.model_executor.model_runner"

_prepared: list[str] = []
_settings: Settings | None = None


def install(settings: Settings) -> None:
    """Load the kernels if they are asked for, register both hooks, apply them and check that they hold. Once per
    process.
    """
    global _settings
    if _settings is not None:
        return
    check_amx_is_off()
    if settings.packed:
        from sglang_rvv import kernels

        kernels.load()
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    HookRegistry.register(GET_MODEL_LOADER, prepare_what_it_loads, HookType.AFTER)
    HookRegistry.register(COMPUTE_LM_HEAD, around_lm_head, HookType.AROUND)
    HookRegistry.apply_hooks()
    check_hooks()
    _settings = settings


def prepare_what_it_loads(loader: Any, *args: Any, **kwargs: Any) -> Any:
    """After `get_model_loader`: the loader's `load_model` also routes the projections of the model it returns."""
    load = loader.load_model

    @functools.wraps(load)
    def load_and_prepare(*load_args: Any, **load_kwargs: Any) -> Any:
        from sglang_rvv import linear

        model = load(*load_args, **load_kwargs)
        packed_bytes = linear.prepare(model, _settings or Settings())
        _prepared.append(type(model).__name__)
        print(f"sglang_rvv: {type(model).__name__} routed, {packed_bytes} bytes packed", file=sys.stderr, flush=True)
        return model

    loader.load_model = load_and_prepare
    return loader


def around_lm_head(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Around `_compute_lm_head`; imported late, because linears are not importable yet when hooks are registered."""
    from sglang_rvv.linear import compute_lm_head

    return compute_lm_head(original, *args, **kwargs)


def check_hooks() -> None:
    """Raise IntegrationError unless both hooks hold; SGLang's registry only logs a hook that it could not apply."""
    from sglang.srt.layers.logits_processor import LogitsProcessor
    from sglang.srt.model_loader import loader

    for target, function in (
        (GET_MODEL_LOADER, loader.get_model_loader),
        (f"{MODEL_RUNNER}.get_model_loader", getattr(sys.modules.get(MODEL_RUNNER), "get_model_loader", None)),
        (COMPUTE_LM_HEAD, getattr(LogitsProcessor, "_compute_lm_head", None)),
    ):
        if function is None or not hasattr(function, "__wrapped__"):
            raise IntegrationError("the hook did not take hold", upstream=target)


def check_amx_is_off() -> None:
    """Raise IntegrationError if SGLang took our operators for Intel's AMX kernels."""
    common = sys.modules.get("sglang.srt.utils.common")
    if common is None or getattr(common, "is_intel_amx_backend_available", None) is not False:
        raise IntegrationError(
            "SGLang believes that AMX kernels are present",
            upstream="sglang.srt.utils.common.is_intel_amx_backend_available",
            mend="import sglang before sgl_kernel, and start Python with sglang_rvv.pth on a site path",
        )


def check_model_prepared() -> None:
    """Raise IntegrationError if a model was loaded past our hook; called when memory pools are made, after loading."""
    if not _prepared:
        raise IntegrationError("a model was loaded, but not through the hooked loader", upstream=GET_MODEL_LOADER)
