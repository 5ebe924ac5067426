"""The out-of-tree CPU platform: one class on every architecture, so that a cross-check on x86_64 runs the code a
board runs.

SGLang 0.5.15 finds it through the entry point group `sglang.srt.platforms` in the middle of importing
`sglang.srt.utils.common`: nothing that imports that module may be imported here at the top.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

from sglang.srt.platforms.cpu import CpuSRTPlatform
from sglang.srt.platforms.device_mixin import PlatformEnum

from sglang_rvv import kernels, policy, startup
from sglang_rvv.settings import Settings
from sglang_rvv.upstream import IntegrationError


def activate() -> str:
    """The entry point. Runs in every process that imports SGLang, workers included."""
    # torch of Debian is built without libuv, and TCPStore asks for it unless told otherwise.
    os.environ.setdefault("USE_LIBUV", "0")
    return f"{RvvPlatform.__module__}:{RvvPlatform.__qualname__}"


class RvvPlatform(CpuSRTPlatform):  # type: ignore[misc]
    """CPU, out of tree: SGLang's CUDA, AMX and vllm paths stay off, and pools and allocators are named here."""

    _enum = PlatformEnum.OOT
    device_name = "cpu"
    device_type = "cpu"

    @cached_property
    def settings(self) -> Settings:
        """What the environment asks for, read once per process."""
        return Settings.from_environment()

    def apply_server_args_defaults(self, server_args: Any) -> None:
        """Fill in what was left open (`ServerArgs.__post_init__`). A choice that cannot work here is refused, not
        replaced.
        """
        for field in ("attention_backend", "prefill_attention_backend", "decode_attention_backend"):
            chosen = getattr(server_args, field)
            if chosen is None and field != "attention_backend":
                continue  # as the one for both
            active = policy.choose_attention(chosen)
            setattr(server_args, field, active)
            if policy.is_fallback(chosen, active):
                startup.say(
                    f"sglang_rvv: attention backend {policy.ATTENTION} is not active, {active} is: "
                    f"{kernels.capability().why_not}"
                )
        if (grammar := policy.choose_grammar(server_args.grammar_backend)) != server_args.grammar_backend:
            server_args.grammar_backend = grammar
            startup.say(
                f"sglang_rvv: grammar backend {grammar}, {policy.GRAMMAR} is not installed: no structured output"
            )
        server_args.sampling_backend = "pytorch"
        policy.check(server_args, self.settings)
        disable_graphs(server_args)

    def get_default_attention_backend(self) -> str:
        return policy.choose_attention(None)

    def get_device(self, local_rank: int | None = None) -> str:
        """A string: `ServerArgs._handle_missing_default_values` splits it, although the interface says torch.device."""
        return "cpu"

    def get_mha_kv_pool_cls(self) -> type:
        from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool
        from sglang.srt.server_args import get_global_server_args

        from sglang_rvv import hooks, scheduler_state
        from sglang_rvv.kv_pool import Int8KVPool

        hooks.check_model_prepared()
        scheduler_state.check()
        pool: type = Int8KVPool if get_global_server_args().kv_cache_dtype == "int8" else MHATokenToKVPool
        return pool

    def get_mla_kv_pool_cls(self) -> type:
        raise IntegrationError(
            "latent attention (MLA) is not supported on this platform",
            upstream="sglang.srt.model_executor.model_runner_kv_cache_mixin",
        )

    def get_paged_allocator_cls(self) -> Any:
        """A factory: out of tree, `init_memory_pool` passes `page_size`, which the allocator for pages of one token
        does not take.
        """
        return make_allocator

    def init_backend(self) -> None:
        """Called while `sglang.srt.model_executor.model_runner` is being imported, in every process that will run a
        model.
        """
        from sglang_rvv import hooks

        hooks.install(self.settings)


def disable_graphs(server_args: Any) -> None:
    """Switch off graph capture of both phases; only the name `torch_native` would do so by itself."""
    from sglang.srt.model_executor.cuda_graph_config import Backend

    server_args.cuda_graph_config.decode.backend = Backend.DISABLED
    server_args.cuda_graph_config.prefill.backend = Backend.DISABLED


def make_allocator(size: int, *, page_size: int, **rest: Any) -> Any:
    """SGLang's allocator for pages of one token; the paged one allocates through Triton kernels."""
    from sglang.srt.mem_cache.allocator import TokenToKVPoolAllocator

    if page_size != 1:
        raise IntegrationError(
            f"page size {page_size} needs Triton kernels",
            upstream="sglang.srt.mem_cache.allocator.PagedTokenToKVPoolAllocator",
            mend="--page-size 1",
        )
    return TokenToKVPoolAllocator(size, **rest)
