"""The functions of SGLang that we hook, through its own registry, and the proof that every hook took hold.

Three doors, because `model_runner` is half imported when we are first called in a process that runs a model:

* `install_arguments`, from the general plugin, in the main process of a server before it reads its command line.
* `install`, from `RvvPlatform.init_backend`, in every process that will run a model or reads a command line: the
  benchmark, which never loads general plugins, as well as each scheduler of a server. `ModelRunner` does not exist yet;
  `get_model_loader` does, already bound in the half-imported module, and what it returns loads the model before memory
  pools are sized, so that packed weights are accounted for.
* `install_for_loading`, when a loader is about to load a model: by then `ModelRunner` is whole.
"""

from __future__ import annotations

import functools
import pkgutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sglang_rvv import policy, startup
from sglang_rvv.settings import Settings
from sglang_rvv.upstream import IntegrationError

GET_MODEL_LOADER = "sglang.srt.model_loader.loader.get_model_loader"
COMPUTE_LM_HEAD = "sglang.srt.layers.logits_processor.LogitsProcessor._compute_lm_head"
SUPPORT_TRITON = "sglang.srt.utils.common.support_triton"
SERVER_ARGS = "sglang.srt.server_args.ServerArgs"
W8A8_AFTER_LOADING = "sglang.srt.layers.quantization.w8a8_int8.W8A8Int8LinearMethod.process_weights_after_loading"
MODEL_RUNNER = "sglang.srt.model_executor.model_runner"
CONFIGURE_KV_CACHE = f"{MODEL_RUNNER}.ModelRunner.configure_kv_cache_dtype"
CELL_SIZE = "sglang.srt.model_executor.pool_configurator.DefaultPoolConfigurator._compute_cell_size"
LORA_WRAPS = "sglang.srt.lora.layers.BaseLayerWithLoRA.__init__"
UPDATES = tuple(
    f"{MODEL_RUNNER}.ModelRunner.update_weights_from_{source}" for source in ("disk", "distributed", "tensor", "ipc")
)

_installed: set[str] = set()
_prepared: list[str] = []


@dataclass(frozen=True)
class Hook:
    """`function` goes where `kind` (a name of SGLang's HookType) says; `copies` are modules that had taken the target
    by name and must have ours too.
    """

    target: str
    function: Any
    kind: str
    copies: tuple[str, ...] = ()


def install(settings: Settings) -> None:
    """What every process needs. Once per process."""
    if "install" in _installed:
        return
    check_amx_is_off()
    install_arguments()
    apply(
        (
            Hook(GET_MODEL_LOADER, prepare_what_it_loads, "AFTER", (f"{MODEL_RUNNER}.get_model_loader",)),
            Hook(COMPUTE_LM_HEAD, around_lm_head, "AROUND"),
            Hook(SUPPORT_TRITON, around_support_triton, "AROUND"),
        )
    )
    _installed.add("install")


def install_arguments() -> None:
    """What a process that reads a command line needs: the name of our attention backend, and our arguments. Once per
    process; a server's main process runs no model, and needs nothing else.
    """
    if "arguments" in _installed:
        return
    register_attention()
    from sglang_rvv.server_args import RvvServerArgs

    apply((Hook(SERVER_ARGS, RvvServerArgs, "REPLACE"),))
    engine: Any = sys.modules.get("sglang.srt.entrypoints.engine")
    if engine is not None and hasattr(engine, "Engine"):
        engine.Engine.server_args_class = RvvServerArgs
    _installed.add("arguments")


def install_for_loading() -> None:
    """What only a process that runs a model needs, when `ModelRunner` is there. Once per process; that for adapters
    with the first model that may have them.
    """
    if "loading" not in _installed:
        apply(
            (
                Hook(W8A8_AFTER_LOADING, around_w8a8_after_loading, "AROUND"),
                Hook(CONFIGURE_KV_CACHE, around_configure_kv_cache_dtype, "AROUND"),
                Hook(CELL_SIZE, after_cell_size, "AFTER"),
                *(Hook(target, around_update_weights, "AROUND") for target in UPDATES),
            )
        )
        _installed.add("loading")
    if "adapters" not in _installed and uses_lora():
        apply((Hook(LORA_WRAPS, after_lora_wraps, "AFTER"),))
        _installed.add("adapters")


def uses_lora() -> bool:
    """Whether the server may wrap layers for adapters; only then is that code imported."""
    from sglang.srt.server_args import get_global_server_args

    arguments = get_global_server_args()
    return bool(arguments.enable_lora or arguments.lora_paths)


def apply(hooks: Sequence[Hook]) -> None:
    """Register and apply hooks. Raises IntegrationError that names the first that did not take hold: SGLang's registry
    only logs a hook that it could not apply.
    """
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    for hook in hooks:
        HookRegistry.register(hook.target, hook.function, HookType[hook.kind])
    HookRegistry.apply_hooks()
    for hook in hooks:
        for place in (hook.target, *hook.copies):
            check(place, hook.function)


def check(target: str, function: Any) -> None:
    """Raise IntegrationError unless the hook holds at `target`."""
    try:
        found = pkgutil.resolve_name(target)
    except (ImportError, AttributeError) as error:
        raise IntegrationError(f"there is nothing to hook: {error}", upstream=target) from error
    if found is not function and not hasattr(found, "__wrapped__"):
        raise IntegrationError("the hook did not take hold", upstream=target)


def register_attention() -> None:
    """Our attention backend, and SGLang's torch_native counted, by its own registry."""
    from sglang.srt.layers.attention.attention_registry import register_attention_backend
    from sglang.srt.server_args import ATTENTION_BACKEND_CHOICES, add_attention_backend_choices

    def ours(runner: Any) -> Any:
        from sglang_rvv.attention import RVVAttnBackend

        return RVVAttnBackend(runner)

    def native(runner: Any) -> Any:
        from sglang_rvv.attention import CountedTorchNative

        return CountedTorchNative(runner)

    if policy.ATTENTION not in ATTENTION_BACKEND_CHOICES:
        add_attention_backend_choices([policy.ATTENTION])
    register_attention_backend(policy.ATTENTION)(ours)
    register_attention_backend(policy.FALLBACK)(native)


def prepare_what_it_loads(loader: Any, *args: Any, **kwargs: Any) -> Any:
    """After `get_model_loader`: the loader's `load_model` also gives the kernels to the model that it returns."""
    load: Callable[..., Any] = loader.load_model

    @functools.wraps(load)
    def load_and_prepare(*load_args: Any, **load_kwargs: Any) -> Any:
        install_for_loading()
        model = load(*load_args, **load_kwargs)
        startup.prepare(model)
        _prepared.append(type(model).__name__)
        return model

    loader.load_model = load_and_prepare
    return loader


def around_lm_head(original: Any, *args: Any, **kwargs: Any) -> Any:
    """Around `_compute_lm_head`; imported late, because linears are not importable yet when hooks are registered."""
    from sglang_rvv.linear import compute_lm_head

    return compute_lm_head(original, *args, **kwargs)


def around_support_triton(original: Any, backend: str) -> bool:
    """Nothing of ours is Triton's; SGLang knows the backends without it by name."""
    return backend != policy.ATTENTION and bool(original(backend))


def around_w8a8_after_loading(original: Any, method: Any, layer: Any) -> None:
    """SGLang transposes the codes for CUDA; ours are taken as they were loaded, [N, K], and can be loaded again."""


def around_configure_kv_cache_dtype(original: Any, runner: Any) -> None:
    """`int8`, which SGLang does not know."""
    if runner.server_args.kv_cache_dtype != "int8":
        original(runner)
        return
    import torch

    runner.kv_cache_dtype = torch.int8


def after_cell_size(result: int, configurator: Any, runner: Any, num_layers: int) -> int:
    """Bytes of a token in the KV pool: of INT8 with its scales."""
    import torch

    if runner.kv_cache_dtype != torch.int8:
        return result
    from sglang_rvv.kv_pool import scale_bytes_per_token

    return result + scale_bytes_per_token(runner.model_config.get_num_kv_heads(runner.tp_size), num_layers)


def after_lora_wraps(result: None, wrapper: Any, base_layer: Any, *args: Any, **kwargs: Any) -> None:
    """After `BaseLayerWithLoRA.__init__`: what LoRA wraps is SGLang's again."""
    from sglang_rvv import linear

    linear.release(base_layer)


def around_update_weights(original: Any, runner: Any, *args: Any, **kwargs: Any) -> Any:
    """Around `ModelRunner.update_weights_from_*`: packed copies are dropped, and made again of whatever is there then,
    also where the update failed half way.
    """
    from sglang_rvv import linear, packed_weight

    packed_weight.invalidate(runner.model)
    try:
        return original(runner, *args, **kwargs)
    finally:
        linear.repack(runner.model)


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
